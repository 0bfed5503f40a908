// Predicted against actual of an import: errors by group, and what changed since the same configuration was measured before.

import { h, prose, table } from "../shared/dom.js";
import { METRICS, count, errorPercent, few, figurePercent, nameOf, ofMetric, percent, plural } from "../shared/format.js";

const KINDS = { all: "all rows", accelerator: "accelerator", engine_version: "engine", lineage: "model lineage", stack: "stack" };
const MAX_ROW = 20;

/** Return the tables of a drift report; nothing if there is none. */
export function driftPanel(report) {
  if (!report) return [];
  const errors = distinct(report.errors).slice(0, MAX_ROW);
  return [
    errors.length ? table(`Predicted against actual: ${plural(report.n_compared, "row")} that version ${report.predictor_version} has not learnt`, {
      "Metric": (r) => METRICS[r.metric],
      "Of": (r) => (r.kind === "all" ? KINDS.all : `${KINDS[r.kind]} ${r.kind === "accelerator" ? nameOf(r.name) : r.name}`),
      "Rows": (r) => count(r.n_row),
      "Median error": (r) => errorPercent(r.median_ape),
      "Measured / predicted": (r) => few(r.bias),
      [`In the ${percent(report.level)} interval`]: (r) => figurePercent(r.coverage),
    }, errors) : "",
    changes(`${plural(report.n_changed, "value")} of ${count(report.n_repeat)} measured before changed by more than repeats do`, report.changes),
    changes(`${plural(report.n_other_settings, "value")} differ from runs with other settings: a change of settings`, report.setting_changes),
    ...[...report.warnings, ...report.reasons.map((reason) => `Drift: ${reason}`)].map((text) => h("p", { class: "warning box" }, prose(text))),
  ].filter(Boolean);
}

/** Return the table of changed values; nothing if there are none. */
function changes(title, rows) {
  if (!rows.length) return "";
  return table(title, {
    "Metric": (r) => `${METRICS[r.metric]}, ${r.statistic}`,
    "Configuration": (r) => `${r.model}, ${few(r.n_accelerator)} × ${nameOf(r.accelerator)}, ${r.concurrency ? `${few(r.concurrency)} in flight` : `${few(r.request_rate ?? 0)}/s`}`,
    "Before": (r) => `${ofMetric(r.metric, r.before)} on ${r.date_before}`,
    "Now": (r) => `${ofMetric(r.metric, r.after)} on ${r.date_after}`,
    "Differs in": (r) => r.settings.join(", ") || "no recorded setting differs",
  }, rows.slice(0, MAX_ROW));
}

/** Return the groups without those that hold all rows of their metric besides the one named so. */
function distinct(errors) {
  const all = Object.fromEntries(errors.filter((one) => one.kind === "all").map((one) => [one.metric, one.n_row]));
  return errors.filter((one) => one.kind === "all" || one.n_row < all[one.metric]);
}
