// Predictions of a campaign's measurements, against what was measured.

import { h, problemBox } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { METRICS, errorPercent } from "../shared/format.js";
import { latestOnly } from "../shared/latest.js";
import { medianError, predictRows } from "../shared/predictions.js";
import { showAccuracy } from "../charts/accuracy.js";

const SHOWN = ["tpot_s", "ttft_s", "e2e_s", "output_throughput_token_per_s"];

/** Return a choice of campaign and metric, and their chart. */
export async function accuracyPanel() {
  const campaigns = (await ask("v1/campaigns")).filter((one) => one.n_row > 0);
  const campaign = h("select", {}, campaigns.map(({ name, n_row }) => h("option", { value: name }, `${name} (${n_row.toLocaleString("en")})`)));
  const metric = h("select", {}, SHOWN.map((name) => h("option", { value: name }, METRICS[name])));
  const place = h("div", {}, h("div", { "aria-live": "polite" }), h("div", { class: "chart square" }));
  const latest = latestOnly();
  let rows = null;
  const draw = () => show(place, rows, metric.value);
  const load = async () => {
    say(place, h("p", { class: "hint" }, "Predicting the measurements …"));
    rows = null;
    try {
      await latest(predicted(campaign.value), (found) => { rows = found; draw(); });
    } catch (error) {
      say(place, problemBox(error));
    }
  };
  campaign.addEventListener("change", load);
  metric.addEventListener("change", () => rows && draw());
  if (campaigns.length) load();
  return [h("div", { class: "row" }, h("label", { class: "beside" }, "Campaign ", campaign), h("label", { class: "beside" }, "Metric ", metric)), place];
}

async function predicted(campaign) {
  const { rows, n_row, n_learnt } = await ask(`v1/campaigns/${encodeURIComponent(campaign)}/measurements?limit=300`);
  return Object.assign(await predictRows(rows), { n_row, n_learnt });
}

/** Put text in place of the figures; the chart is removed. */
function say(place, ...texts) {
  const [status, chart] = place.children;
  status.replaceChildren(...texts);
  chart.replaceChildren();
}

function show(place, rows, metric) {
  const points = rows.filter((row) => row[metric] > 0 && row[`measured_${metric}`] > 0);
  if (!points.length) {
    say(place, h("p", { class: "hint" }, `${METRICS[metric]} was not measured in this campaign.`));
    return;
  }
  const unseen = points.filter((row) => !row.isLearnt);
  const errors = [[points.filter((row) => row.isLearnt), "that the predictor learnt from"], [unseen, "that it never saw"]]
    .filter(([some]) => some.length)
    .map(([some, which]) => `${errorPercent(medianError(some, metric))} over ${some.length} measurements ${which}`);
  say(place,
    h("p", {}, `Median error ${errors.join(", and ")}.`),
    h("p", { class: "hint" }, `${points.length} of ${rows.n_row.toLocaleString("en")} rows are shown. Errors on what was learnt from flatter; the scoreboard holds models out.`));
  showAccuracy(place.lastElementChild, points, metric);
}
