"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = Array.from(document.querySelectorAll(".plot"));
  const config = { displaylogo: false, displayModeBar: false, responsive: true };
  const paperWidth = 660; // A4 less its margins, at 96 points an inch
  const isNarrow = () => window.innerWidth < 600;

  const draw = (plot) => {
    const figure = figures[plot.dataset.figure];
    const { data, layout } = structuredClone(figure);
    if (isNarrow()) {
      layout.font.size = 11;
      if (layout.xaxis.ticktext) thin(layout.xaxis);
      data.forEach((trace) => { if (trace.name) trace.name = wrapped(trace.name); });
    }
    Plotly.newPlot(plot, data, layout, config);
  };
  // A legend does not break its lines by itself, and would be cut off at the edge.
  const wrapped = (name) => name.replace(/(.{24,36}?) /g, "$1<br>");
  const thin = (axis) => {
    if (axis.ticktext.length < 6) return;
    axis.ticktext = axis.ticktext.map((text, i) => (i % 2 ? "" : text));
  };
  // The policy of the page knows the library by the hash of its text.
  const load = async () => {
    const packed = atob(document.getElementById("library").textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(text).text();
    document.head.append(script);
  };
  if (typeof DecompressionStream === "undefined") {
    document.getElementById("outdated").hidden = false;
  } else {
    load().then(() => plots.forEach(draw));
  }
  const relayout = (change) => {
    if (window.Plotly) plots.forEach((plot) => Plotly.relayout(plot, change));
  };

  // Paper: its width, and the short tables unfolded; everything as before afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    relayout({ autosize: false, width: paperWidth });
    opened = Array.from(document.querySelectorAll("details.short:not([open])"));
    opened.forEach((fold) => { fold.open = true; });
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((fold) => { fold.open = false; });
    relayout({ autosize: true, width: null });
  });
})();
