"use strict";
// Draws figures of lines, points and bars on linear and logarithmic axes, with what the pointer
// shows, a legend that hides traces, and parts that are magnified. The figures are those of the
// library that other pages carry; `drawing.py` states which of them this script draws.
const engine = (() => {
  const { add, lines, widthOf, write, scaleOf, dashes, symbol, colourOf, drawTrace } = marks;
  const TIP_REACH = 24; // pixels from the pointer to a point that it shows
  const DRAG = 6; // pixels after which a pressed pointer selects a part
  const GAP = 8, SAMPLE = 34;
  const states = new Map();

  const isListed = (trace) => trace.name && trace.showlegend !== false;

  // Entries of the legend in rows: {index, x, row}.
  const legendOf = ({ figure, font }, width) => {
    if (!figure.layout.showlegend) return { entries: [], height: 0 };
    let x = 0, row = 0, depth = 1, y = 0;
    const line = font.size * 1.35, entries = [];
    figure.data.forEach((trace, index) => {
      if (!isListed(trace)) return;
      const room = SAMPLE + widthOf(trace.name, font) + 2 * GAP;
      if (x > 0 && x + room > width) [x, y, row, depth] = [0, y + depth * line, row + 1, 1];
      depth = Math.max(depth, lines(trace.name).length);
      entries.push({ index, trace, x, y: y + line * 0.8 });
      x += room;
    });
    return { entries, height: entries.length ? y + depth * line + GAP : 0, line };
  };

  const drawLegend = (state, svg, legend, left, top) => legend.entries.forEach((entry) => {
    const { trace, index } = entry, x = left + entry.x, y = top + entry.y;
    const group = add(svg, "g", { class: "entry", opacity: state.hidden.has(index) ? 0.35 : 1 });
    const sample = add(group, "g", { class: "drawn" }), mode = trace.mode ?? "lines+markers";
    const middle = y - state.font.size * 0.35, colour = colourOf(trace), line = trace.line ?? {};
    if (trace.type === "bar") {
      add(sample, "rect", { x: x + 8, y: middle - 6, width: 14, height: 12, fill: colour,
        "fill-opacity": trace.marker?.opacity });
    } else {
      if (mode.includes("lines")) {
        add(sample, "path", { d: `M${x} ${middle}H${x + 28}`, stroke: line.color ?? colour,
          "stroke-width": line.width ?? 2, "stroke-dasharray": dashes(line.dash, line.width ?? 2) });
      }
      if (mode.includes("markers")) {
        const name = [trace.marker?.symbol ?? "circle"].flat()[0], isOpen = name.endsWith("-open");
        add(sample, "path", { d: symbol(name, x + 14, middle, 4), fill: isOpen ? "none" : colour,
          stroke: isOpen ? colour : "none", "stroke-width": 1.5 });
      }
    }
    write(group, trace.name, x + SAMPLE, y, { "font-size": state.font.size }, legend.line);
    const width = widthOf(trace.name, state.font) + SAMPLE;
    add(group, "rect", { x, y: y - legend.line, width, height: legend.line * 1.3, fill: "transparent" });
    group.addEventListener("click", (event) => choose(state, index, event.detail > 1));
  });
  // A click hides or shows a trace; two show it alone, or all again.
  const choose = (state, index, isDouble) => {
    const every = state.figure.data.map((trace, i) => (isListed(trace) ? i : -1)).filter((i) => i >= 0);
    if (isDouble) {
      const rest = every.filter((i) => i !== index), isAlone = rest.every((i) => state.hidden.has(i));
      state.hidden = new Set(isAlone ? [] : rest);
    } else if (!state.hidden.delete(index)) {
      state.hidden.add(index);
    }
    render(state);
  };

  const ticksOf = (spec, scale) => (spec.tickvals ?? [])
    .map((value, i) => ({ at: scale(value), text: spec.ticktext[i], value }))
    .filter((tick) => scale.holds(tick.value));
  const drawAxes = ({ figure, font }, svg, area, x, y) => {
    const { xaxis, yaxis } = figure.layout, line = font.size * 1.25;
    const grid = add(svg, "g", { class: "grid" }), axes = add(svg, "g", { class: "axis" });
    const across = ticksOf(xaxis, x), upright = ticksOf(yaxis, y);
    let text = "";
    if (xaxis.showgrid !== false) across.forEach((tick) => { text += `M${tick.at} ${area.top}V${area.low}`; });
    if (yaxis.showgrid !== false) upright.forEach((tick) => { text += `M${area.left} ${tick.at}H${area.right}`; });
    add(grid, "path", { d: text });
    const frame = xaxis.showline === false ? "" : `M${area.left} ${area.low}H${area.right}`;
    const strokes = xaxis.ticks === "" ? "" : across.map((tick) => `M${tick.at} ${area.low}v5`).join("");
    add(axes, "path", { class: "frame", d: frame + strokes });
    across.forEach((tick) => write(axes, tick.text, tick.at, area.low + 6 + font.size,
      { "text-anchor": "middle", "font-size": font.size }, line));
    upright.forEach((tick) => {
      const shift = (lines(tick.text).length - 1) * line / 2;
      write(axes, tick.text, area.left - GAP, tick.at + font.size * 0.35 - shift,
        { "text-anchor": "end", "font-size": font.size }, line);
    });
    const middle = (area.top + area.low) / 2, size = { "text-anchor": "middle", "font-size": font.size };
    if (xaxis.title) write(svg, xaxis.title.text, (area.left + area.right) / 2, area.titleY, size);
    if (yaxis.title) {
      write(svg, yaxis.title.text, 0, 0, { ...size, transform: `translate(${font.size} ${middle}) rotate(-90)` });
    }
  };
  const areaOf = ({ figure, font }, width, height, legendHeight) => {
    const { xaxis, yaxis, margin } = figure.layout;
    const labels = Math.max(0, ...(yaxis.ticktext ?? []).map((text) => widthOf(text, font)));
    const depth = Math.max(1, ...(xaxis.ticktext ?? []).map((text) => lines(text).length));
    const titleY = height - margin.b - 4;
    const low = titleY - (xaxis.title?.text ? font.size + 14 : 0) - depth * font.size * 1.25 - 2;
    const left = margin.l + labels + GAP + (yaxis.title?.text ? font.size + 12 : 0);
    const isNoted = (figure.layout.annotations ?? []).length > 0;
    const above = isNoted ? 18 : 4, top = Math.max(margin.t, legendHeight + above);
    return { left, right: width - margin.r, top, low, titleY, above };
  };

  const drawShapes = (layer, shapes, area, x, y) => shapes.forEach((shape) => {
    const [scaleX, scaleY] = [
      shape.xref === "paper" ? (v) => area.left + v * (area.right - area.left) : x,
      shape.yref === "paper" ? (v) => area.low - v * (area.low - area.top) : y];
    const [x0, x1, y0, y1] = [scaleX(shape.x0), scaleX(shape.x1), scaleY(shape.y0), scaleY(shape.y1)];
    const line = shape.line ?? {};
    const style = { stroke: line.color, "stroke-width": line.width ?? 2, fill: shape.fillcolor ?? "none",
      "stroke-dasharray": dashes(line.dash, line.width ?? 2) };
    const d = shape.type === "line" ? `M${x0} ${y0}L${x1} ${y1}` : `M${x0} ${y0}H${x1}V${y1}H${x0}Z`;
    add(layer, "path", { d, ...style });
  });
  const drawNotes = (svg, notes, area, x, y) => notes.forEach((note) => {
    const across = x.placed(note.x), up = note.yref === "paper" ? area.low - note.y * (area.low - area.top) : y.placed(note.y);
    if (across < area.left - 1 || across > area.right + 1) return;
    write(svg, note.text, across, up - (note.yanchor === "bottom" ? 4 : -4),
      { "text-anchor": "middle", "font-size": note.font?.size ?? 12 });
  });

  const showTip = (state, layer, area, x, y) => {
    layer.replaceChildren();
    const inside = (box) => x >= box.left && x <= box.right && y >= box.top && y <= box.low;
    let best, reach = TIP_REACH;
    state.targets.forEach((target) => {
      const distance = target.box && inside(target.box) ? 0 : Math.hypot(target.a - x, target.b - y);
      if (distance <= reach) [best, reach] = [target, distance];
    });
    if (!best) return;
    const font = { ...state.font, size: 13 }, width = widthOf(best.text, font) + 2 * GAP;
    const height = lines(best.text).length * 17 + GAP;
    const [a, b] = best.box && inside(best.box) ? [x, y] : [best.a, best.b];
    const left = Math.max(2, a + 12 + width > area.right + 14 ? a - 12 - width : a + 12);
    const top = Math.min(Math.max(2, b - height / 2), state.figure.layout.height - height - 2);
    add(layer, "rect", { x: left, y: top, width, height, rx: 3 });
    write(layer, best.text, left + GAP, top + 17, { "font-size": font.size }, 17);
    if (!best.box) add(layer, "circle", { cx: a, cy: b, r: 5, fill: "none", stroke: best.colour, "stroke-width": 2 });
  };

  // Press and pull magnifies a part; two clicks show the whole again. Axes that are fixed stay.
  const listen = (state, surface, selection, tip, area, x, y) => {
    let from;
    const pointOf = (event) => {
      const frame = surface.ownerSVGElement.getBoundingClientRect();
      return [event.clientX - frame.left, event.clientY - frame.top];
    };
    const within = ([a, b]) => [Math.min(Math.max(a, area.left), area.right), Math.min(Math.max(b, area.top), area.low)];
    const partOf = (to) => {
      const { xaxis, yaxis } = state.figure.layout;
      const [[a, b], [c, d]] = [from, to];
      const isWide = Math.abs(a - c) > DRAG && !xaxis.fixedrange, isTall = Math.abs(b - d) > DRAG && !yaxis.fixedrange;
      return { isWide, isTall, left: Math.min(a, c), right: Math.max(a, c), top: Math.min(b, d), low: Math.max(b, d) };
    };
    surface.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) from = within(pointOf(event));
    });
    surface.addEventListener("pointermove", (event) => {
      const to = pointOf(event);
      showTip(state, tip, area, ...to);
      selection.replaceChildren();
      if (!from) return;
      const part = partOf(within(to));
      if (!part.isWide && !part.isTall) return;
      const [left, right] = part.isWide ? [part.left, part.right] : [area.left, area.right];
      const [top, low] = part.isTall ? [part.top, part.low] : [area.top, area.low];
      add(selection, "rect", { x: left, y: top, width: right - left, height: low - top });
    });
    surface.addEventListener("pointerup", (event) => {
      if (!from) return;
      const part = partOf(within(pointOf(event)));
      from = undefined;
      if (!part.isWide && !part.isTall) return;
      if (part.isWide) state.view.x = turned(state.range.x, x.invert(part.left), x.invert(part.right));
      if (part.isTall) state.view.y = turned(state.range.y, y.invert(part.low), y.invert(part.top));
      render(state);
    });
    surface.addEventListener("pointerleave", () => {
      from = undefined;
      selection.replaceChildren();
      tip.replaceChildren();
    });
    surface.addEventListener("dblclick", () => { state.view = {}; render(state); });
  };
  const turned = (range, a, b) => ((range[0] < range[1]) === (a < b) ? [a, b] : [b, a]);

  const render = (state) => {
    const { plot, figure, hidden, view, range } = state, { layout } = figure;
    const width = state.width ?? plot.clientWidth, height = layout.height;
    plot.replaceChildren();
    if (!width) return;
    const svg = add(plot, "svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    svg.style.fontFamily = state.font.family;
    const legend = legendOf(state, width - layout.margin.l - layout.margin.r);
    const area = areaOf(state, width, height, legend.height);
    const x = scaleOf(layout.xaxis, view.x ?? range.x, area.left, area.right);
    const y = scaleOf(layout.yaxis, view.y ?? range.y, area.low, area.top);
    const edge = view.x || view.y ? 0 : 6; // half a mark of a point on the frame
    const clip = add(add(svg, "clipPath", { id: `clip-${plot.dataset.figure}` }), "rect", { x: area.left - edge,
      y: area.top - edge, width: area.right - area.left + 2 * edge, height: area.low - area.top + 2 * edge });
    const clipped = { class: "drawn", "clip-path": `url(#${clip.parentNode.id})` };
    drawAxes(state, svg, area, x, y);
    const shapes = layout.shapes ?? [];
    drawShapes(add(svg, "g", clipped), shapes.filter((shape) => shape.layer === "below"), area, x, y);
    const inside = add(svg, "g", clipped), free = add(svg, "g", { class: "drawn" }), stacks = new Map();
    state.targets = [];
    figure.data.forEach((trace, index) => {
      if (hidden.has(index)) return;
      const layer = trace.cliponaxis === false && !view.x && !view.y ? free : inside;
      drawTrace(layer, trace, x, y, figure, stacks, state.targets, state.font.size);
    });
    drawShapes(add(svg, "g", clipped), shapes.filter((shape) => shape.layer !== "below"), area, x, y);
    drawNotes(svg, layout.annotations ?? [], area, x, y);
    const selection = add(svg, "g", { class: "selection" });
    const surface = add(svg, "rect", { x: area.left, y: area.top, width: Math.max(0, area.right - area.left),
      height: Math.max(0, area.low - area.top), fill: "transparent" });
    drawLegend(state, svg, legend, layout.margin.l, area.top - area.above - legend.height);
    const tip = add(svg, "g", { class: "tip" });
    listen(state, surface, selection, tip, area, x, y);
  };

  const draw = (plot, figure) => {
    const { layout } = figure, range = { x: layout.xaxis.range, y: layout.yaxis.range };
    const state = { plot, figure, range, hidden: new Set(), view: {}, targets: [], font: layout.font };
    states.set(plot, state);
    let known = 0;
    new ResizeObserver(() => {
      if (plot.clientWidth === known) return;
      known = plot.clientWidth;
      render(state);
    }).observe(plot);
    render(state);
  };
  const resize = (plot, width) => {
    const state = states.get(plot);
    if (!state) return;
    state.width = width ?? undefined;
    render(state);
  };
  return { isSupported: true, load: () => Promise.resolve(), draw, resize };
})();
