// The view of the predictor: what it is, how good it is, its versions, and who changed it.

import { at, h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { count, errorPercent, figurePercent, METRICS, moment, percent } from "../shared/format.js";
import { accuracyPanel } from "./accuracy.js";
import { challengerPanel } from "./challenger.js";
import { retrainingsPanel } from "./retrainings.js";
import { scoreboardPanel } from "./scoreboard.js";
import { versionsPanel } from "./versions.js";

const HELD_OUT_ROWS = "Means over the lineages of models, of every measurement learnt from; P4, in the scoreboard below and in the README, "
  + "pools the shipped measurements that it scores, without rates that saturate the hardware.";

/** Build the view; each panel shows its own problem, so one that fails leaves the others. */
export async function start() {
  at("predictor").replaceChildren(
    h("h2", { id: "predictor-title" }, "Predictor"),
    h("div", { id: "of-version" }, ...panelsOfVersion()),
    panel("Scoreboard", scoreboardPanel),
    panel("Retrainings", retrainingsPanel(() => at("of-version").replaceChildren(...panelsOfVersion()))),
  );
}

export const load = start;

/** Return the panels that depend on the version in service. */
const panelsOfVersion = () => [
  panel("In service", inService),
  h("div", { class: "columns" }, panel("Versions", versionsPanel(load)), panel("Changes", changes)),
  panel("Challenger", challengerPanel),
  panel("Predicted against measured", accuracyPanel),
];

/** Return a panel that fills itself. */
export function panel(title, fill) {
  const place = h("div", { "aria-busy": "true" }, h("p", { class: "hint" }, "Loading …"));
  fill().then((content) => place.replaceChildren(...[content].flat())).catch((error) => place.replaceChildren(problemBox(error)))
    .finally(() => place.setAttribute("aria-busy", "false"));
  return h("section", { class: "panel" }, h("h3", {}, title), place);
}

async function inService() {
  const predictor = await ask("v1/predictor");
  const rows = Object.entries(predictor.held_out).filter(([metric]) => metric in METRICS);
  return [
    h("p", {}, `Version ${predictor.version}, learnt from ${count(predictor.n_row)} measurements of ${predictor.engines.length} engines, made by roofcast ${predictor.roofcast_version}. Intervals up to ${percent(predictor.highest_level)}.`),
    table("Errors on models that were held out", {
      "Metric": ([metric]) => METRICS[metric],
      "Median error": ([, scores]) => errorPercent(scores.median_ape),
      "Mean error": ([, scores]) => errorPercent(scores.mape),
      "Within 25%": ([, scores]) => figurePercent(scores.within_25),
    }, rows),
    h("p", { class: "hint" }, HELD_OUT_ROWS),
  ];
}

async function changes() {
  const rows = await ask("v1/predictor/changes?limit=20");
  if (!rows.length) return h("p", { class: "hint" }, "None in this state folder.");
  return table("Latest first", {
    "When": (r) => moment(r.at),
    "What": (r) => r.action, "From": (r) => r.version_before, "To": (r) => r.version, "By": (r) => r.caller.replace(/^key:/, "key "),
  }, rows);
}
