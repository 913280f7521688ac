// Values as people read them, in the scales of the server's units module.
import { session } from "./api.svelte.js";

export function scaleOf(unit, value) {
  const scales = session.known?.scales?.[unit] ?? [[1, unit]];
  return scales.find(([divisor]) => Math.abs(value) >= divisor) ?? scales.at(-1);
}

export function number(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) return value.toExponential(digits - 1);
  return value.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
}

export function quantity(value, unit, digits = 3) {
  if (value == null) return "–";
  const [divisor, label] = scaleOf(unit, value);
  return `${number(value / divisor, digits)} ${label}`.trim();
}

// "2.50 ms [2.41, 2.62]"; a side that does not exist is "?". A lower bound is "≥ 990 ms [981, ∞)".
export function interval({ value, low, high, unit, censored }) {
  const [divisor, label] = scaleOf(unit, value);
  const digits = digitsOf(value, low, high);
  const side = (end) => (end == null ? "?" : number(end / divisor, digits));
  const head = `${number(value / divisor, digits)} ${label}`.trim();
  if (censored) return `≥ ${head} [${side(low ?? value)}, ∞)`;
  return low == null && high == null ? head : `${head} [${side(low)}, ${side(high)}]`;
}

function digitsOf(value, low, high) {
  if (low == null || high == null || value === 0 || high <= low) return 3;
  const ratio = (high - low) / 2 / Math.abs(value);
  return Math.min(6, Math.max(3, Math.ceil(-Math.log10(ratio) - 1e-9) + 1));
}

export function duration(seconds) {
  if (seconds == null) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

// UTC, as in reports and on the command line.
export function moment(value) {
  if (value == null) return "–";
  const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
  return Number.isNaN(date.getTime()) ? "–" : `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

// "1 run", "2 runs".
export const counted = (count, noun) => `${count.toLocaleString("en-GB")} ${noun}${count === 1 ? "" : "s"}`;

// As Python's json.dumps(sort_keys=True, separators=(",", ":")) writes it.
export function factorsKey(factors) {
  const keys = Object.keys(factors ?? {}).sort();
  const ascii = (text) =>
    JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `{${keys.map((key) => `${ascii(key)}:${typeof factors[key] === "string" ? ascii(factors[key]) : JSON.stringify(factors[key])}`).join(",")}}`;
}
