// How much one's own measurements improve predictions: each half of a campaign is the reference of the other half.

import { h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { METRICS, errorPercent } from "../shared/format.js";
import { latestOnly } from "../shared/latest.js";
import { medianError, predictRows } from "../shared/predictions.js";

const SHOWN = ["ttft_s", "tpot_s", "itl_s", "e2e_s", "output_throughput_token_per_s"];
const MAX_REFERENCE = 100;

/** Return a choice of the imported campaigns with their comparison. */
export async function stackPanel() {
  const own = (await ask("v1/campaigns")).filter((one) => !one.title);
  if (!own.length) return h("p", { class: "hint" }, "Import measurements of your stack to see how far they shift its predictions.");
  const select = h("select", {}, own.map(({ name }) => h("option", { value: name }, name)));
  const place = h("div", { "aria-live": "polite" });
  const latest = latestOnly();
  const load = async () => {
    place.replaceChildren(h("p", { class: "hint" }, "Predicting each half from the other …"));
    try {
      await latest(compare(select.value), (content) => place.replaceChildren(...content));
    } catch (error) {
      place.replaceChildren(problemBox(error));
    }
  };
  select.addEventListener("change", load);
  load();
  return [h("label", { class: "beside" }, "Campaign ", select), place];
}

async function compare(campaign) {
  const { rows } = await ask(`v1/campaigns/${encodeURIComponent(campaign)}/measurements?limit=${2 * MAX_REFERENCE}`);
  if (rows.length < 4) return [h("p", { class: "hint" }, "Four measurements at least are needed: half of them calibrate the prediction of the others.")];
  const halves = [0, 1].map((rest) => rows.filter((_, i) => i % 2 === rest));
  const answers = (await Promise.all([predictRows(halves[0], halves[1]), predictRows(halves[1], halves[0])])).flat();
  const measured = SHOWN.filter((metric) => answers.some((row) => row[`measured_${metric}`] > 0 && row[metric] > 0));
  const of = (metric) => answers.filter((row) => row[`measured_${metric}`] > 0 && row[metric] > 0);
  return [
    table("Median error of predictions of rows that are not among the references", {
      "Metric": (metric) => METRICS[metric],
      "Before": (metric) => errorPercent(medianError(of(metric), metric, `${metric}_uncalibrated`)),
      "After": (metric) => errorPercent(medianError(of(metric), metric)),
      "Rows": (metric) => of(metric).length,
    }, measured),
    h("p", { class: "hint" }, rows.some((one) => one.is_learnt)
      ? "The active predictor has learnt from some of these rows, which flatters both columns."
      : "Before: the predictor as it is. After: with half of your rows as references, nothing retrained."),
  ];
}
