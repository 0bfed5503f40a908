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
    this.problems = body.problems ?? [];
    this.nearMisses = body.did_you_mean ?? [];
    this.requestId = body.request_id ?? "";
  }
}

/** Return the JSON of a route; `body` makes it a POST unless `method` says otherwise. */
export function ask(path, { body, method = body === undefined ? "GET" : "POST", signal } = {}) {
  if (body === undefined) return send(path, { method, signal });
  return send(path, { method, signal, body: JSON.stringify(body), type: "application/json" });
}

const MAX_TRY = 4;
const QUESTIONS = /^v1\/(training\/)?(predictions|explanations|recommendations)$/;

/** Send a request; one that changes nothing is sent again while the service has no free slot for it. */
async function send(path, request) {
  for (let n = 1; ; n += 1) {
    try {
      return await sendOnce(path, request);
    } catch (error) {
      if (error.status !== 503 || !error.retryAfterS || n === MAX_TRY || (request.method !== "GET" && !QUESTIONS.test(path))) throw error;
      await new Promise((resolve) => setTimeout(resolve, n * error.retryAfterS * 1000));
    }
  }
}

async function sendOnce(path, { method, body, type, signal }) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  if (type) headers["content-type"] = type;
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body });
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
  if (!response.ok) throw Object.assign(new Problem(response.status, answer), { retryAfterS: Number(response.headers.get("retry-after")) });
  return answer;
}

const MEDIA_TYPES = { json: "application/json", jsonl: "application/x-ndjson", ndjson: "application/x-ndjson", csv: "text/csv" };

/** Import a benchmark file and compare it with the predictor, or only check it. */
export function uploadFile(file, { campaign, values, isDryRun, isClaim }) {
  const query = new URLSearchParams({ name: file.name });
  if (campaign) query.set("campaign", campaign);
  for (const value of values) query.append("set", value);
  if (isClaim) query.set("claim", "true");
  query.set(isDryRun ? "dry_run" : "compare", "true");
  const type = MEDIA_TYPES[file.name.split(".").at(-1).toLowerCase()] ?? "application/octet-stream";
  return send(`v1/measurements/files?${query}`, { method: "POST", body: file, type });
}
