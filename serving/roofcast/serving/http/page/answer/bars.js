// Bars of a card: a prediction with its interval and limit, and the memory of a replica.

import { h } from "../shared/dom.js";
import { gigabytes, METRICS, ofMetric, percent } from "../shared/format.js";

const ROOM = 1.15;

/** Return the interval of a predicted metric on a scale that shows its limit. */
export function intervalBar({ metric, statistic, value, low, high, limit }, level) {
  const end = Math.max(high, limit ?? 0) * ROOM;
  const share = (x) => `${Math.min(100, x / end * 100)}%`;
  const isFloor = metric === "output_throughput_token_per_s";
  const isMet = limit === null || (isFloor ? value >= limit : value <= limit);
  const name = `${METRICS[metric] ?? metric} ${statistic}`;
  const range = `${ofMetric(metric, low)} to ${ofMetric(metric, high)}`;
  const limitText = limit === null ? "" : `limit ${ofMetric(metric, limit)}`;
  const label = `${name}: ${ofMetric(metric, value)}, ${percent(level)} interval ${range}${limitText ? `, ${limitText}` : ""}`;
  return h("div", { class: "interval", role: "img", "aria-label": label },
    h("span", { class: "name" }, name),
    h("span", { class: "value" }, ofMetric(metric, value)),
    h("span", { class: `track${isMet ? "" : " missed"}`, style: { "--low": share(low), "--high": share(high), "--at": share(value), "--limit": share(limit ?? 0) } },
      h("span", { class: "range" }), h("span", { class: "point" }), limit === null ? null : h("span", { class: "limit-mark" })),
    h("span", { class: "detail" }, h("span", {}, range), h("span", {}, limitText)));
}

/** Return how much of a replica's memory is used. */
export function memoryBar({ memory_used_byte: used, memory_usable_byte: usable }) {
  const share = Math.min(1, used / usable);
  const text = `${gigabytes(used)} of ${gigabytes(usable)}`;
  return h("div", { class: "interval", role: "img", "aria-label": `Memory of a replica: ${text}` },
    h("span", { class: "name" }, "Memory"), h("span", { class: "value" }, percent(share)),
    h("span", { class: "track memory", style: { "--high": `${share * 100}%` } }, h("span", { class: "range" })),
    h("span", { class: "detail" }, h("span", {}, text)));
}
