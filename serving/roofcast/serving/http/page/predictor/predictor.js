// The view of the predictor: what it is, how good it is, its versions, and who changed it.

import { at, h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { count, errorPercent, few, figurePercent, METRICS, percent } from "../shared/format.js";
import { accuracyPanel } from "./accuracy.js";
import { challengerPanel } from "./challenger.js";
import { scoreboardPanel } from "./scoreboard.js";
import { versionsPanel } from "./versions.js";

const HELD_OUT_ROWS = "Means over the lineages of models, of every measurement learnt from; P4, in the scoreboard below and in the README, "
  + "pools the shipped measurements that it scores, without rates that saturate the hardware.";

/** Build the view; each panel shows its own problem, so one that fails leaves the others. */
export async function start() {
  at("predictor").replaceChildren(
    h("h2", { id: "predictor-title" }, "Predictor"),
    panel("In service", inService),
    h("div", { class: "columns" }, panel("Versions", versionsPanel(load)), panel("Changes", changes)),
    panel("Challenger", challengerPanel),
    panel("Predicted against measured", accuracyPanel),
    panel("Scoreboard", scoreboardPanel),
    panel("Retrainings", retrainings),
  );
}

export const load = start;

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
    "When": (r) => new Date(r.at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }),
    "What": (r) => r.action, "From": (r) => r.version_before, "To": (r) => r.version, "By": (r) => r.caller.replace(/^key:/, "key "),
  }, rows);
}

async function retrainings() {
  const rows = await ask("v1/retrainings?limit=20");
  const start = h("button", { type: "button", on: { click: () => retrain(start, place) } }, "Retrain on all measurements");
  const place = h("div", { "aria-live": "polite" });
  const list = rows.length ? table("Latest first", {
    "Requested": (r) => new Date(r.requested_at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }),
    "State": (r) => r.state,
    "Stage": (r) => (r.state === "running" ? stage(r) : ""),
    "Outcome": (r) => outcome(r),
    "": (r) => (isOpen(r) ? h("button", { type: "button", on: { click: (event) => cancel(r.id, event.target, place) } }, "Cancel") : ""),
  }, rows) : h("p", { class: "hint" }, "None yet.");
  return [list, h("div", { class: "row" }, start), place];
}

const stage = (r) => (r.n_step ? `${r.stage}: ${r.n_step_done} of ${r.n_step}` : r.stage);

function outcome({ state, error, report }) {
  if (state === "failed" || state === "cancelled") return error;
  if (!report) return "";
  const verdict = report.promoted ?? report.is_promoted;
  const outcome = verdict === undefined ? "" : verdict ? "promoted" : "not promoted";
  return [outcome, report.reason, report.version && `version ${report.version}`, report.n_row && `${few(report.n_row)} rows`].filter(Boolean).join(", ");
}

const isOpen = (r) => r.state === "queued" || (r.state === "running" && r.stage !== "registration");

async function cancel(id, button, place) {
  button.disabled = true;
  try {
    await ask(`v1/retrainings/${id}/cancellation`, { method: "POST" });
    place.replaceChildren(h("p", { class: "success box" }, `Retraining ${id} is cancelled; a running one stops after the folds that it fits.`));
  } catch (error) {
    button.disabled = false;
    place.replaceChildren(problemBox(error));
  }
}

async function retrain(button, place) {
  button.disabled = true;
  try {
    const { id, state } = await ask("v1/retrainings", { method: "POST" });
    place.replaceChildren(h("p", { class: "success box" }, `Retraining ${id} is ${state}; it takes minutes, and this list follows when the view is opened again.`));
  } catch (error) {
    place.replaceChildren(problemBox(error));
  } finally {
    button.disabled = false;
  }
}
