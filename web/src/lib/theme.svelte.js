// Light, dark, or as the system has it; the choice is kept by the browser.
export const theme = $state({ choice: "system", isDark: false });
const system = matchMedia("(prefers-color-scheme: dark)");

function apply() {
  theme.isDark = theme.choice === "system" ? system.matches : theme.choice === "dark";
  document.documentElement.dataset.theme = theme.isDark ? "dark" : "light";
}

export function startTheme() {
  theme.choice = localStorage.getItem("theme") ?? "system";
  system.addEventListener("change", apply);
  apply();
}

export function chooseTheme(choice) {
  theme.choice = choice;
  localStorage.setItem("theme", choice);
  apply();
}
