"use strict";
(() => {
  const button = document.getElementById("copy");
  const label = button.textContent;
  // Pages from a plain http address have no clipboard; there a selection is copied.
  const copySelection = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied ? Promise.resolve() : Promise.reject(new Error("refused"));
  };
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = JSON.parse(document.getElementById("markdown").textContent);
    const copied = navigator.clipboard
      ? navigator.clipboard.writeText(text).catch(() => copySelection(text)) : copySelection(text);
    const answer = await copied.then(() => "Copied", () => "The browser refused; use report.md");
    button.textContent = answer;
    setTimeout(() => { button.textContent = label; }, 2500);
  });

  const openTarget = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no id */ }
    if (!target) return;
    const folds = target.matches("section") ? target.querySelectorAll(":scope > details") : [];
    folds.forEach((fold) => { fold.open = true; });
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", openTarget);
  document.querySelectorAll("nav a").forEach((link) => link.addEventListener("click", () => {
    if (link.hash === location.hash) openTarget();
  }));
  openTarget();

  // Paper: sections and short tables unfolded; everything as before afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details.short:not([open]), section > details.whole:not([open])"));
    opened.forEach((fold) => { fold.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((fold) => { fold.open = false; }));
})();
