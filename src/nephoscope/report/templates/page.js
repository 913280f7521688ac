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
  if (engine.isSupported) {
    engine.load().then(() => plots.forEach(draw));
  } else {
    document.getElementById("outdated").hidden = false;
  }

  // Paper: its width, and the short tables unfolded; everything as before afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    plots.forEach((plot) => engine.resize(plot, paperWidth));
    opened = Array.from(document.querySelectorAll("details.short:not([open])"));
    opened.forEach((fold) => { fold.open = true; });
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((fold) => { fold.open = false; });
    plots.forEach((plot) => engine.resize(plot, null));
  });
})();
