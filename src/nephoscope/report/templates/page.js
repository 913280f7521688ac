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
