// Client of the public HTTP API.

let key = sessionStorage.getItem("roofcast-key") ?? "";

/** Use an API key in this tab; an empty one removes it. */
export function useKey(secret) {
  key = secret.trim();
  if (key) sessionStorage.setItem("roofcast-key", key);
  else sessionStorage.removeItem("roofcast-key");
}

export const hasKey = () => key !== "";

/** A problem detail (RFC 9457) of the service, or a failed connection. */
export class Problem extends Error {
  constructor(status, body) {
    const field = body.field ?? "";
    const detail = body.detail || body.title || `the service answered ${status}`;
    super(field && detail.startsWith(`${field}: `) ? detail.slice(field.length + 2) : detail);
    this.status = status;
    this.field = field;
    this.nearMisses = body.did_you_mean ?? [];
    this.requestId = body.request_id ?? "";
  }
}

/** Return the JSON of a route; `body` makes it a POST unless `method` says otherwise. */
export async function ask(path, { body, method = body === undefined ? "GET" : "POST", signal } = {}) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the service does not answer; check that it runs, then try again" });
  }
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    answer = { detail: `the service answered ${response.status} without JSON` };
    if (response.ok) throw new Problem(response.status, answer);
  }
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}
