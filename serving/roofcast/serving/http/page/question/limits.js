// Limits on latency and throughput: one row each, with metric, statistic and a slider.

import { at, h } from "../shared/dom.js";
import { FieldError, buildSlider, readNumber } from "./sliders.js";

export const KINDS = {
  ttft: { name: "Time to first token (TTFT)", unit: "ms", scale: 1000, min: 20, max: 60000, value: 2000, statistic: "p95" },
  tpot: { name: "Time per further token (TPOT)", unit: "ms", scale: 1000, min: 2, max: 1000, value: 50, statistic: "p50" },
  e2e: { name: "End to end", unit: "s", scale: 1, min: 0.1, max: 600, value: 20, statistic: "p95" },
  itl: { name: "Gap between tokens (ITL)", unit: "ms", scale: 1000, min: 2, max: 1000, value: 50, statistic: "p50" },
  nttft: { name: "TTFT per input token", unit: "ms", scale: 1000, min: 0.01, max: 100, value: 2, statistic: "p50" },
  throughput_per_user: { name: "Speed that a user sees, at least", unit: "tokens/s", scale: 1, min: 1, max: 1000, value: 25, statistic: "p95" },
  throughput: { name: "Total throughput, at least", unit: "tokens/s", scale: 1, min: 10, max: 1000000, value: 2000 },
};
const STATISTICS = ["mean", "p50", "p90", "p95", "p99"];
const FLOORS = ["throughput_per_user", "throughput"];
const USUAL_STATISTIC = "p95";
const PATTERN = /^([a-z0-9_]+)(?::([a-z0-9]+))?([<>])=?(\d+(?:\.\d+)?)((?:tok|tokens?)\/s|ms|s|)$/;

let serial = 0;

/** Append a limit of a kind; `changed` is called when it is removed. */
export function addLimit(kind, changed, value, statistic) {
  const { name, unit, min, max, value: usual, statistic: usualStatistic } = KINDS[kind];
  const id = `limit-${serial += 1}`;
  const slider = h("div", { class: "slider", "data-name": id, "data-label": name, "data-unit": unit, "data-min": min, "data-max": max, "data-value": value ?? usual });
  const choice = usualStatistic && h("select", { "aria-label": `Statistic of ${name}`, class: "statistic" },
    STATISTICS.map((one) => h("option", { selected: one === (statistic ?? usualStatistic) }, one)));
  const remove = h("button", { type: "button", class: "plain remove", "aria-label": `Remove the limit on ${name}` }, "×");
  const row = h("div", { class: "limit", "data-kind": kind, "data-id": id }, slider, h("div", { class: "row" }, choice, remove));
  remove.addEventListener("click", () => { row.remove(); listMissing(changed); changed(); });
  at("limits").append(row);
  buildSlider(slider);
  listMissing(changed);
}

/** Append a limit that has no slider, as it is written. */
function addText(text, changed) {
  const remove = h("button", { type: "button", class: "plain remove", "aria-label": `Remove the limit ${text}` }, "×");
  const row = h("div", { class: "limit", "data-text": text }, h("div", { class: "row" }, h("code", {}, text), remove));
  remove.addEventListener("click", () => { row.remove(); changed(); });
  at("limits").append(row);
}

/** Offer the kinds that may be added; a kind may have several statistics. */
function listMissing(changed) {
  const select = at("add-limit");
  select.replaceChildren(h("option", { value: "" }, "…"), ...Object.entries(KINDS).map(([kind, { name }]) => h("option", { value: kind }, name)));
  select.onchange = () => { if (select.value) { addLimit(select.value, changed); changed(); } };
}

/** Return the limits as the API reads them. */
export function readLimits() {
  const rows = [...document.querySelectorAll("#limits .limit")];
  if (!rows.length) throw new FieldError(at("add-limit"), "Limits: add at least one");
  return rows.map((row) => {
    const { kind, id, text } = row.dataset;
    if (text !== undefined) return text;
    const { scale } = KINDS[kind];
    const value = readNumber(id);
    if (kind === "throughput") return `throughput>=${value}`;
    if (FLOORS.includes(kind)) return `${kind}:${row.querySelector("select").value}>=${value}`;
    return `${kind}:${row.querySelector("select").value}<=${scale === 1000 ? `${value}ms` : `${value}s`}`;
  });
}

/** Replace the limits by those of a request; one without a slider is shown as it is written. */
export function writeLimits(limits, changed) {
  at("limits").replaceChildren();
  for (const text of limits) {
    const limit = parse(text);
    if (limit) addLimit(limit.kind, changed, limit.value, limit.statistic);
    else addText(text, changed);
  }
  listMissing(changed);
}

/** Return the kind, value and statistic of a limit; null if no slider shows it. */
function parse(text) {
  const [, kind, statistic, sign, number, unit] = PATTERN.exec(text.toLowerCase().replaceAll(" ", "")) ?? [];
  if (!Object.hasOwn(KINDS, kind)) return null;
  const { scale } = KINDS[kind];
  const isFloor = FLOORS.includes(kind);
  if (isFloor !== (sign === ">") || isFloor === ["ms", "s"].includes(unit) || !isFloor && !unit) return null;
  if (kind === "throughput" ? ![undefined, "mean"].includes(statistic) : statistic && !STATISTICS.includes(statistic)) return null;
  const value = Number(number) * (unit === "ms" ? scale / 1000 : scale);
  return { kind, value: Number(value.toPrecision(12)), statistic: statistic ?? USUAL_STATISTIC };
}
