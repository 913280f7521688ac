// A scale from 0 to 1 over estimates with their intervals: linear from zero, logarithmic where values span
// more than a factor of 20. It is of one table, whose lines have one unit. around: a value that ratios are
// judged against, on a logarithmic scale that contains it.
const WIDE = 20;

export function scaleOver(estimates, around = null) {
  const ends = estimates.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]).concat(around ?? []).filter(Number.isFinite);
  const low = ends.reduce((a, b) => Math.min(a, b), Infinity);
  const high = ends.reduce((a, b) => Math.max(a, b), -Infinity);
  const values = estimates.map(({ value }) => value);
  const isWide = low > 0 && (around != null || Math.max(...values) / Math.min(...values) > WIDE);
  const map = isWide ? Math.log : (value) => value;
  const [start, end] = isWide || around != null ? [map(low), map(high)] : [Math.min(0, low), Math.max(0, high)];
  return (value) => (end > start ? Math.min(1, Math.max(0, (map(value) - start) / (end - start))) : 0.5);
}
