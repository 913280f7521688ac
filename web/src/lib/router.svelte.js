// Addresses are #/path?key=value: every state of the page that a person would share is in them.
function read() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { parts, query: new URLSearchParams(query) };
}

export const route = $state({ current: safeRead() });

function safeRead() {
  try {
    return read();
  } catch {
    return { parts: ["unknown"], query: new URLSearchParams() }; // an address that was mangled
  }
}

addEventListener("hashchange", () => (route.current = safeRead()));

export function link(parts, query = {}) {
  const values = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const item of [value].flat()) if (item !== "" && item != null) values.append(key, item);
  }
  const text = values.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(parts, query = {}) {
  location.hash = link(parts, query);
}
