// Why this: where the time of an entry goes, the corrections that were learnt, and the nearest measurements.

import { at, h, problemBox, prose, showDialog, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { few, METRICS, nAccelerator, nameOf, ofMetric, percent, replicaName, runs, seconds } from "../shared/format.js";
import { showRoofline } from "../charts/roofline.js";
import { showTimes } from "../charts/times.js";
import { isNumber } from "../question/kept.js";
import { chooseStack, isStack, lengthsOf } from "../question/question.js";

const STEADY = 1e9;
const STATISTIC = "mean";

/** Show the explanation of an entry. */
export async function showReasons(request, answer, entry) {
  const place = h("div", { class: "reasons" }, h("p", {}, "Explaining …"));
  showDialog(`Why ${replicaName(entry)}?`, h("p", { class: "hint" }, runs(entry)), place);
  try {
    const { rows } = await ask("v1/explanations", { body: questionOf(request, entry, answer.level) });
    show(place, answer, entry, rows[0]);
  } catch (error) {
    place.replaceChildren(problemBox(error));
  }
}

/** Return the explanation request of an entry: one replica under its share of the load, in a steady state. */
function questionOf(request, entry, level) {
  const isNamed = typeof request.model === "string";
  const row = {
    model: isNamed ? request.model : request.model.name, accelerator: entry.accelerator, n_accelerator: nAccelerator(entry),
    engine: entry.engine, weight_precision: entry.weight_precision, tp: entry.tp, pp: entry.pp,
    ...lengthsOf(request.workload), concurrency: Math.max(1, entry.load_per_replica), statistic: STATISTIC, n_request: STEADY,
  };
  if (entry.dp > 1) row.dp = entry.dp;
  if (entry.ep > 1) row.ep = entry.ep;
  if (entry.speculation) {
    row.speculation = entry.speculation.kind;
    row.n_speculative_token = entry.speculation.n_token;
    row.chain_acceptance_ratio = entry.speculation.chain_acceptance_ratio;
  }
  const { stack, operator } = request;
  return { rows: [row], level, stack, operator, models: isNamed ? [] : [request.model] };
}

function show(place, answer, entry, row) {
  const roofline = h("div", { class: "chart" });
  const times = h("div", { class: "chart" });
  place.replaceChildren(...[
    h("p", {}, sentence(answer, entry)), row.prediction && support(row.prediction),
    row.remarks.length ? h("ul", { class: "warning box" }, row.remarks.map((text) => h("li", {}, prose(text)))) : null,
    h("h3", {}, "Where the time goes"), times,
    h("h3", {}, "Operators under the roofs of one accelerator"), roofline,
    h("h3", {}, "From the estimate to the prediction"), corrections(row.prediction),
    h("h3", {}, "Nearest measurements"), h("div", { class: "nearest" }, nearest(row.prediction)),
  ].filter(Boolean));
  showTimes(times, row);
  showRoofline(roofline, row);
}

function sentence(answer, entry) {
  const other = answer.runner_up_usd_per_h;
  const first = `It meets all limits with a probability of ${percent(entry.p_limits_met)} and is bound by ${entry.bottleneck}.`;
  if (entry.rank > 1 || other === null || !entry.cost_usd_per_h) return first;
  return `${first} The cheapest on another accelerator costs ${few(other / entry.cost_usd_per_h)} times as much.`;
}

const SUPPORT = {
  near: "The model was measured with the engine on the accelerator, but not this configuration at this load.",
  extrapolated: "The model was not measured with the engine on the accelerator.",
};

/** What a prediction rests on: the newest measurement of the same, and a button to be answered as those run it who made it. */
function support(prediction) {
  if (prediction.support !== "measured") return SUPPORT[prediction.support] ? h("p", { class: "support" }, SUPPORT[prediction.support]) : null;
  const { observed_stack: stack, observed_engine_version: version, observed_date: date } = prediction;
  const values = Object.keys(METRICS).filter((metric) => isNumber(prediction[`observed_${metric}`]))
    .map((metric) => `${METRICS[metric]} ${ofMetric(metric, prediction[`observed_${metric}`])}`);
  const asRun = () => { at("dialog").close(); chooseStack(stack); };
  return h("p", { class: "support" }, `The same was measured: ${values.join(", ")} (${[stack, version, date].filter(Boolean).join(", ")}). `,
    isStack(stack) ? h("button", { type: "button", on: { click: asRun } }, "As they run it") : null);
}

const GROUPS = {
  estimate: "analytic estimate", typical_ratio: "what all measurements depart by", model: "model", hardware: "hardware",
  config: "configuration", workload: "workload", memory: "memory", roofline: "roofline", effects: "similar measurements",
  references: "references",
};

function corrections(prediction) {
  const metrics = ["ttft_s", "tpot_s"].filter((metric) => prediction?.[metric]);
  if (!metrics.length) return h("p", {}, prediction?.reason ?? "There is no prediction.");
  const names = Object.keys(prediction[metrics[0]].contributions);
  const columns = { "Factor": (name) => GROUPS[name] ?? name };
  for (const metric of metrics) {
    columns[`${METRICS[metric]} ${STATISTIC}`] = (name) => (name === "predicted"
      ? `${ofMetric(metric, prediction[metric].value)} (${seconds(prediction[metric].low)} to ${seconds(prediction[metric].high)})`
      : factor(name, prediction[metric].contributions[name] ?? 0));
  }
  return table("The estimate times each factor is the prediction", columns, [...names, "predicted"]);
}

const factor = (name, log) => (name === "estimate" ? seconds(Math.exp(log)) : `× ${Math.exp(log).toFixed(2)}`);

function nearest(prediction) {
  const rows = ["tpot_s", "ttft_s"].flatMap((metric) => (prediction?.[metric]?.nearest ?? []).slice(0, 4).map((one) => ({ ...one, metric })));
  if (!rows.length) return h("p", {}, "No measurement is near enough to inform this; it rests on the estimate and the general correction.");
  return table("Measurements whose errors correlate most with this prediction's", {
    "Measured": (r) => `${METRICS[r.metric]} ${ofMetric(r.metric, r.measured)}`,
    "Model": (r) => r.model.split("/").at(-1),
    "On": (r) => `${few(r.n_accelerator)} × ${nameOf(r.accelerator)}`,
    "Engine": (r) => [r.engine, r.weight_precision].filter(Boolean).map(nameOf).join(", "),
    "Differs in": (r) => r.differs.map((name) => name.replace(/^n_/, "").replaceAll("_", " ")).join(", ") || "nothing",
    "Correlation": (r) => few(r.correlation, 2),
    "Campaign": (r) => [r.campaign, r.date].filter(Boolean).join(", "),
  }, rows);
}
