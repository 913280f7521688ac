"use strict";
// Lines, points, error bars and bars of a figure as SVG.
const marks = (() => {
  const ruler = document.createElement("canvas").getContext("2d");

  const add = (parent, name, attributes = {}, text = undefined) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => {
      if (value !== undefined) node.setAttribute(key, value);
    });
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };
  // Texts of figures are escaped for the library, and broken by its mark.
  const lines = (text) => String(text).split("<br>").map((line) => (
    line.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&")));
  const widthOf = (text, font) => {
    ruler.font = `${font.size}px ${font.family}`;
    return Math.max(0, ...lines(text).map((line) => ruler.measureText(line).width));
  };
  const write = (parent, text, x, y, attributes = {}, lineHeight = 16) => {
    const node = add(parent, "text", { x, y, ...attributes });
    lines(text).forEach((line, i) => add(node, "tspan", { x, dy: i ? lineHeight : 0 }, line));
    return node;
  };
  const at = (value, i) => (Array.isArray(value) ? value[i] : value);

  const scaleOf = (spec, view, from, to) => {
    const isLog = spec.type === "log";
    const place = (value) => (isLog ? Math.log10(value) : value);
    const unit = (to - from) / (view[1] - view[0]);
    const scale = (value) => (
      value === null || (isLog && value <= 0) ? NaN : from + (place(value) - view[0]) * unit);
    scale.placed = (value) => from + (value - view[0]) * unit;
    scale.invert = (pixel) => view[0] + (pixel - from) / unit;
    scale.holds = (value) => {
      const [low, high] = [Math.min(...view), Math.max(...view)];
      const own = place(value), slack = (high - low) * 1e-9;
      return own >= low - slack && own <= high + slack;
    };
    return scale;
  };
  const dashes = (dash, width) => {
    const unit = Math.max(width, 3);
    const parts = { dot: [1, 1], dash: [3, 3], longdash: [5, 5], dashdot: [3, 1, 1, 1],
      longdashdot: [5, 2, 1, 2] }[dash];
    return parts && parts.map((part) => part * unit).join(" ");
  };
  const symbol = (name, x, y, r) => {
    const shift = (points) => `M${points.map(([a, b]) => `${round(x + a)} ${round(y + b)}`).join("L")}Z`;
    switch (name.replace("-open", "")) {
      case "square": return shift([[-r, -r], [r, -r], [r, r], [-r, r]]);
      case "diamond": return shift([[0, -1.3 * r], [1.3 * r, 0], [0, 1.3 * r], [-1.3 * r, 0]]);
      case "triangle-up": return shift([[-1.15 * r, r / 2], [1.15 * r, r / 2], [0, -r]]);
      case "cross": return shift(plus(0.4 * r, 1.2 * r));
      case "x": return shift(plus(0.4 * r, 1.2 * r).map(([a, b]) => [(a - b) * 0.71, (a + b) * 0.71]));
      default: return `M${round(x - r)} ${round(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
    }
  };
  const plus = (a, b) => [[b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a],
    [-a, -b], [a, -b], [a, -a], [b, -a]];
  const round = (value) => Math.round(value * 100) / 100;
  const colourOf = (trace) => at(trace.marker?.color, 0) ?? trace.line?.color ?? "#0072B2";

  const path = (trace, x, y) => {
    let text = "", pen = false, last = 0;
    trace.x.forEach((value, i) => {
      const [a, b] = [round(x(value)), round(y(trace.y[i]))];
      if (Number.isNaN(a) || Number.isNaN(b)) { pen = false; return; }
      const step = trace.line?.shape === "hv" && pen ? `L${a} ${last}` : "";
      text += `${step}${pen ? "L" : "M"}${a} ${b}`;
      [pen, last] = [true, b];
    });
    return text;
  };
  const drawLines = (layer, trace, x, y) => {
    const line = trace.line ?? {};
    if (trace.fill === "toself") {
      const outline = path(trace, x, y).replace(/(?!^)M/g, "ZM");
      if (outline) add(layer, "path", { d: `${outline}Z`, fill: trace.fillcolor, stroke: "none" });
    }
    if (line.width === 0) return;
    const width = line.width ?? 2;
    add(layer, "path", { d: path(trace, x, y), fill: "none", stroke: line.color ?? colourOf(trace),
      "stroke-width": width, "stroke-dasharray": dashes(line.dash, width), "stroke-linejoin": "round" });
  };
  const drawPoints = (layer, trace, x, y) => {
    const marker = trace.marker ?? {}, groups = new Map();
    trace.x.forEach((value, i) => {
      const [a, b] = [x(value), y(trace.y[i])];
      if (Number.isNaN(a) || Number.isNaN(b)) return;
      const name = at(marker.symbol, i) ?? "circle", colour = at(marker.color, i) ?? colourOf(trace);
      const key = `${name.endsWith("-open")} ${colour}`;
      const shape = symbol(name, a, b, (at(marker.size, i) ?? 6) / 2);
      groups.set(key, { name, colour, d: (groups.get(key)?.d ?? "") + shape });
    });
    groups.forEach(({ name, colour, d }) => {
      const isOpen = name.endsWith("-open"), edge = marker.line ?? {};
      const width = isOpen ? edge.width || 1.5 : edge.width;
      add(layer, "path", { d, fill: isOpen ? "none" : colour, opacity: marker.opacity,
        stroke: width ? edge.color ?? colour : "none", "stroke-width": width });
    });
  };
  const drawErrors = (layer, trace, error, isAcross, spots) => {
    let text = "";
    const cap = error.width ?? 4;
    spots.forEach(({ a, b, low, high }) => {
      if (low === high || [a, b, low, high].some(Number.isNaN)) return;
      text += isAcross
        ? `M${low} ${b}H${high}M${low} ${b - cap}V${b + cap}M${high} ${b - cap}V${b + cap}`
        : `M${a} ${low}V${high}M${a - cap} ${low}H${a + cap}M${a - cap} ${high}H${a + cap}`;
    });
    add(layer, "path", { d: text, fill: "none", stroke: error.color ?? colourOf(trace),
      "stroke-width": error.thickness ?? 2 });
  };
  const errorSpots = (trace, error, isAcross, x, y, ends) => trace.x.map((value, i) => {
    const [a, b] = isAcross ? [x(ends ? ends[i] : value), y(trace.y[i])] : [x(value), y(trace.y[i])];
    const middle = isAcross ? (ends ? ends[i] : value) : trace.y[i], scale = isAcross ? x : y;
    const [low, high] = [middle - (error.arrayminus ?? error.array)[i], middle + error.array[i]];
    return { a, b, low: round(scale(low)), high: round(scale(high)) };
  });
  const texts = (layer, trace, x, y, size) => trace.text.forEach((text, i) => {
    const [upright, side] = (at(trace.textposition, i) ?? "middle center").split(" ");
    const anchor = { left: "end", right: "start" }[side] ?? "middle";
    const across = { left: -8, right: 8 }[side] ?? 0, down = { top: -6, bottom: 16 }[upright] ?? 4;
    write(layer, text, x(trace.x[i]) + across, y(trace.y[i]) + down,
      { "text-anchor": anchor, "font-size": trace.textfont?.size ?? size });
  });

  const drawTrace = (layer, trace, x, y, figure, stacks, targets, size) => {
    const own = add(layer, "g", { opacity: trace.opacity });
    const isAcross = Boolean(trace.error_x);
    let ends;
    if (trace.type === "bar") {
      ends = drawBars(own, trace, x, y, figure.layout.barmode === "stack" ? stacks : new Map(), targets);
    } else {
      const mode = trace.mode ?? "lines+markers";
      if (mode.includes("lines")) drawLines(own, trace, x, y);
      if (mode.includes("markers")) drawPoints(own, trace, x, y);
      if (mode.includes("text")) texts(own, trace, x, y, size);
      const isNamed = trace.hoverinfo === "name";
      if (isNamed || (trace.customdata && trace.hoverinfo !== "skip")) {
        trace.x.forEach((value, i) => targets.push({ a: x(value), b: y(trace.y[i]),
          text: isNamed ? trace.name : trace.customdata[i], colour: colourOf(trace) }));
      }
    }
    const error = trace.error_x ?? trace.error_y;
    if (error) drawErrors(own, trace, error, isAcross, errorSpots(trace, error, isAcross, x, y, ends));
  };
  const drawBars = (layer, trace, x, y, stacks, targets) => trace.x.map((value, i) => {
    const from = (at(trace.base, i) ?? 0) + (stacks.get(trace.y[i]) ?? 0), end = from + value;
    stacks.set(trace.y[i], (stacks.get(trace.y[i]) ?? 0) + value);
    const half = (trace.width ?? 0.8) / 2;
    const [a, b] = [x(from), x(end)], [top, low] = [y(trace.y[i] - half), y(trace.y[i] + half)];
    const box = { left: Math.min(a, b), right: Math.max(a, b), top: Math.min(top, low), low: Math.max(top, low) };
    if (Object.values(box).some(Number.isNaN)) return end;
    const edge = trace.marker?.line ?? {};
    add(layer, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.low - box.top,
      fill: at(trace.marker?.color, i) ?? colourOf(trace), "fill-opacity": at(trace.marker?.opacity, i),
      stroke: edge.width ? edge.color : "none", "stroke-width": edge.width });
    if (trace.customdata) targets.push({ box, a: box.right, b: (top + low) / 2, text: trace.customdata[i],
      colour: at(trace.marker?.color, i) });
    return end;
  });

  return { add, lines, widthOf, write, scaleOf, dashes, symbol, colourOf, drawTrace };
})();
