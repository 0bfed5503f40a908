// Compare two entries side by side.

import { h, showDialog } from "../shared/dom.js";
import { METRICS, gigabytes, offer, ofMetric, percent, replicaName, runs, usd, few, count } from "../shared/format.js";

/** Return the bar that appears once entries are chosen, and the function that chooses one. */
export function compareBar(entries) {
  const chosen = new Map();
  const text = h("span");
  const button = h("button", { type: "button", class: "primary", on: { click: () => showComparison([...chosen.keys()]) } }, "Compare");
  const element = h("div", { class: "compare-bar", hidden: true }, text, button);
  const choose = (entry, box) => {
    if (box.checked && chosen.size === 2) {
      const [oldest, oldBox] = chosen.entries().next().value;
      oldBox.checked = false;
      chosen.delete(oldest);
    }
    if (box.checked) chosen.set(entry, box);
    else chosen.delete(entry);
    element.hidden = !chosen.size;
    button.disabled = chosen.size < 2;
    text.textContent = [...chosen.keys()].map((one) => `${one.rank}: ${replicaName(one)}`).join("  and  ") + (chosen.size < 2 ? ", and one more" : "");
  };
  return { element, choose, entries };
}

const ROWS = {
  "Cost per month": (e) => usd(e.cost_usd_per_month),
  "Cost per hour": (e) => usd(e.cost_usd_per_h),
  "Per million input tokens": (e) => usd(e.cost_usd_per_million_input_token),
  "Per million output tokens": (e) => usd(e.cost_usd_per_million_output_token),
  "Offer": (e) => offer(e),
  "Instances": (e) => count(e.n_instance),
  "Replicas": (e) => count(e.n_replica),
  "Runs": (e) => runs(e),
  "Likely to meet all limits": (e) => percent(e.p_limits_met),
  "In flight on a replica": (e) => `${few(e.load_per_replica)} of ${few(e.in_flight_per_replica)}`,
  "Memory of a replica": (e) => `${gigabytes(e.memory_used_byte)} of ${gigabytes(e.memory_usable_byte)}`,
  "Power": (e) => `${count(e.power_w)} W`,
  "Bound by": (e) => e.bottleneck,
  "Extrapolates": (e) => (e.outside ? "yes" : "no"),
};

function showComparison(pair) {
  const metrics = pair[0].predictions.map(({ metric, statistic }) => [metric, statistic]);
  const rows = [...Object.entries(ROWS), ...metrics.map(([metric, statistic]) => [
    `${METRICS[metric] ?? metric} ${statistic}`,
    (e) => {
      const one = e.predictions.find((p) => p.metric === metric && p.statistic === statistic);
      return one ? `${ofMetric(metric, one.value)} (${ofMetric(metric, one.low)} to ${ofMetric(metric, one.high)})` : "";
    },
  ])];
  const body = rows.map(([name, cell]) => {
    const cells = pair.map(cell);
    return h("tr", { class: cells[0] === cells[1] ? "" : "differs" }, h("th", { scope: "row" }, name), cells.map((text) => h("td", {}, text)));
  });
  const head = h("tr", {}, h("td", {}, ""), pair.map((e) => h("th", { scope: "col" }, `${e.rank}. ${replicaName(e)}`)));
  showDialog("Compare", h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" }, h("table", { class: "compare" }, h("thead", {}, head), h("tbody", {}, body))));
}
