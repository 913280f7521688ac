// Requests to the server. A failure is an Error whose message is the server's sentence.
export const session = $state({ known: null, failure: "" });

export class Failure extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export function address(path, query = {}) {
  const values = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const item of [value].flat()) if (item !== "" && item != null) values.append(key, item);
  }
  const text = values.toString();
  return `./api/v1/${path}${text ? `?${text}` : ""}`;
}

async function request(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "The server does not answer.", "Check that it still runs, then try again.");
  }
  if (response.status === 204) return null;
  let content;
  try {
    content = await response.json();
  } catch {
    throw new Failure(response.status, "The server's answer cannot be read.", "Load the page again.");
  }
  if (response.ok) return content;
  if (response.status === 401 && session.known) session.known.logged_in = false;
  throw new Failure(response.status, content.error, content.hint);
}

export const get = (path, query, signal) => request(address(path, query), { signal });

export const post = (path, body) =>
  request(address(path), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body ?? {}),
  });

export async function openSession() {
  try {
    session.known = await get("session");
    session.failure = "";
  } catch (error) {
    session.failure = `${error.message} ${error.hint ?? ""}`;
  }
}

export async function logIn(token) {
  await post("session", { token });
  await openSession();
}

export async function logOut() {
  await request(address("session"), { method: "DELETE" });
  await openSession();
}
