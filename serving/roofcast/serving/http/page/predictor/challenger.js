// The challenger beside the champion: ratios of their answers, and errors of both on recent measurements.

import { h, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { count, errorPercent, few, METRICS, plural } from "../shared/format.js";

const ofAll = (rows) => rows.filter((row) => row.kind === "all");

/** Fill the panel; without a challenger nothing is compared. */
export async function challengerPanel() {
  const challenger = (await ask("v1/predictor/versions")).find((v) => v.is_challenger);
  if (!challenger) return h("p", { class: "hint" }, "No version answers beside the one in service.");
  const { answers, measurements, champion_version: champion } = await ask(`v1/predictor/versions/${encodeURIComponent(challenger.version)}/comparison`);
  return [
    h("p", {}, `Version ${challenger.version} answers a sample of the requests beside version ${champion}, unseen: ${plural(answers.n_row, "row")} so far.`),
    answers.n_row ? table(`Version ${challenger.version} / version ${champion}`, {
      "Metric": (r) => METRICS[r.metric], "5%": (r) => few(r.low_ratio), "Median": (r) => few(r.median_ratio), "95%": (r) => few(r.high_ratio),
    }, ofAll(answers.ratios)) : "",
    measurements.errors.length ? table("Median errors on measurements that neither has learnt", {
      "Metric": (r) => METRICS[r.metric], "Rows": (r) => count(r.n_row), "In service": (r) => errorPercent(r.champion_median_ape),
      "Challenger": (r) => errorPercent(r.challenger_median_ape), "The challenger is": (r) => r.verdict,
    }, ofAll(measurements.errors)) : h("p", { class: "hint" }, "No recent measurement is new to both."),
  ];
}
