"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = Array.from(document.querySelectorAll(".plot"));
  const paperWidth = 660; // A4 less its margins, at 96 points an inch
  const isNarrow = () => window.innerWidth < 600;

  const draw = (plot) => {
    const figure = structuredClone(figures[plot.dataset.figure]);
    const { data, layout } = figure;
    if (isNarrow()) {
      layout.font.size = 11;
      if (layout.xaxis.ticktext) thin(layout.xaxis);
      data.forEach((trace) => { if (trace.name) trace.name = wrapped(trace.name); });
    }
    engine.draw(plot, figure);
  };
  // A legend does not break its lines by itself, and would be cut off at the edge.
  const wrapped = (name) => name.replace(/(.{24,36}?) /g, "$1<br>");
  const thin = (axis) => {
    if (axis.ticktext.length < 6) return;
    axis.ticktext = axis.ticktext.map((text, i) => (i % 2 ? "" : text));
  };
  const undrawn = new Set(plots);
  const drawOnce = (plot) => { if (undrawn.delete(plot)) draw(plot); };
  // A folded section has no width to draw in before it is opened.
  const drawOpen = (plot) => {
    const fold = plot.closest("details:not([open])");
    if (!fold) drawOnce(plot);
    else fold.addEventListener("toggle", () => drawOpen(plot), { once: true });
  };
  // The drawn numbers in the units of the JSON document, a row for each point.
  const cell = (value) => {
    const text = String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const plain = (text) => String(text ?? "").replaceAll("<br>", " ")
    .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  const ends = (error, i, value) => (
    error ? [value - error.arrayminus[i], value + error.array[i]] : ["", ""]);
  const named = (axis, value) => {
    const place = axis.unit === undefined ? (axis.tickvals ?? []).indexOf(value) : -1;
    return place < 0 ? value : plain(axis.ticktext[place]);
  };
  // A band is drawn before its curve: its low end from left to right, then its high one back.
  const bandOf = (trace) => {
    const count = trace?.fill === "toself" ? trace.x.length / 2 : 0, found = new Map();
    for (let i = 0; i < count; i += 1) found.set(trace.x[i], [trace.y[i], trace.y[2 * count - 1 - i]]);
    return found;
  };
  const lines = (rows) => rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
  const csvOf = ({ data, layout: { xaxis, yaxis } }) => {
    const head = (axis, name) => [plain(axis.title?.text) || name, axis.unit].filter(Boolean).join(" in ");
    // Squares of a map have names on both axes; their figures are in their words.
    if ([xaxis, yaxis].every((axis) => axis.unit === undefined && axis.tickvals)) {
      const squares = data.flatMap((trace) => trace.x.map((x, i) => [
        named(yaxis, trace.y[i]), named(xaxis, x), plain(trace.customdata[i])]));
      return lines([["row", "column", "result"], ...squares]);
    }
    const rows = [["series", head(xaxis, "x"), head(yaxis, "y"), "low", "high"]];
    data.forEach((trace, place) => {
      if (trace.hoverinfo === "skip") return;
      const band = bandOf(data[place - 1]);
      trace.x.forEach((x, i) => {
        const y = trace.y[i];
        if (x === null || y === null) return;
        const own = trace.error_x ? ends(trace.error_x, i, x) : ends(trace.error_y, i, y);
        const [low, high] = band.get(x) ?? own;
        rows.push([plain(trace.name), named(xaxis, x), named(yaxis, y), low, high]);
      });
    });
    return lines(rows);
  };
  plots.forEach((plot) => {
    const figure = figures[plot.dataset.figure];
    if (!figure.data.every((trace) => ["scatter", "bar", "violin"].includes(trace.type))) return;
    const button = document.createElement("button");
    [button.type, button.className, button.textContent] = ["button", "csv", "Save as CSV"];
    button.setAttribute("aria-label", `Save as CSV: ${plot.dataset.figure}`);
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csvOf(figure)], { type: "text/csv" }));
      link.download = `${plot.dataset.figure}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    plot.after(button);
  });

  let isLoaded = false;
  if (engine.isSupported) {
    engine.load().then(() => { isLoaded = true; plots.forEach(drawOpen); });
  } else {
    document.getElementById("outdated").hidden = false;
  }

  window.addEventListener("beforeprint", () => {
    if (isLoaded) plots.forEach(drawOnce);
    plots.forEach((plot) => engine.resize(plot, paperWidth));
  });
  window.addEventListener("afterprint", () => plots.forEach((plot) => engine.resize(plot, null)));
})();
