// Limits on latency and throughput: one row each, with metric, statistic and a slider.

import { at, h } from "../shared/dom.js";
import { buildSlider } from "./sliders.js";

export const KINDS = {
  ttft: { name: "Time to first token (TTFT)", unit: "ms", scale: 1000, min: 20, max: 60000, value: 2000, statistic: "p95" },
  tpot: { name: "Time per further token (TPOT)", unit: "ms", scale: 1000, min: 2, max: 1000, value: 50, statistic: "p50" },
  e2e: { name: "End to end", unit: "s", scale: 1, min: 0.1, max: 600, value: 20, statistic: "p95" },
  itl: { name: "Gap between tokens (ITL)", unit: "ms", scale: 1000, min: 2, max: 1000, value: 50, statistic: "p50" },
  nttft: { name: "TTFT per input token", unit: "ms", scale: 1000, min: 0.01, max: 100, value: 2, statistic: "p50" },
  throughput: { name: "Throughput at least", unit: "tokens/s", scale: 1, min: 10, max: 1000000, value: 2000 },
};
const STATISTICS = ["mean", "p50", "p90", "p95", "p99"];
const PATTERN = /^(\w+?)(?:_s)?(?::(\w+))?(<=|>=)([\d.e+-]+)(ms|s)?$/;

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

/** Offer the kinds that may be added; a kind may have several statistics. */
function listMissing(changed) {
  const select = at("add-limit");
  select.replaceChildren(h("option", { value: "" }, "…"), ...Object.entries(KINDS).map(([kind, { name }]) => h("option", { value: kind }, name)));
  select.onchange = () => { if (select.value) { addLimit(select.value, changed); changed(); } };
}

/** Return the limits as the API reads them. */
export function readLimits() {
  return [...document.querySelectorAll("#limits .limit")].map((row) => {
    const { kind, id } = row.dataset;
    const { scale } = KINDS[kind];
    const value = Number(at(id).value);
    if (kind === "throughput") return `throughput>=${value}`;
    return `${kind}:${row.querySelector("select").value}<=${scale === 1000 ? `${value}ms` : `${value}s`}`;
  });
}

/** Replace the limits by those of a request; one that this form cannot show is left out. */
export function writeLimits(limits, changed) {
  at("limits").replaceChildren();
  for (const text of limits) {
    const [, kind, statistic, , number, unit] = PATTERN.exec(text.replaceAll(" ", "")) ?? [];
    if (!(kind in KINDS)) continue;
    const perSecond = unit === "ms" ? 1 / 1000 : 1;
    addLimit(kind, changed, Number((Number(number) * perSecond * KINDS[kind].scale).toPrecision(12)), statistic ?? "p95");
  }
  listMissing(changed);
}
