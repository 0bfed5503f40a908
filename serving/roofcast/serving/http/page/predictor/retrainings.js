// Retrainings: when the service starts one by itself, those that wait, run and have ended; start and cancel.

import { at, h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { few, moment } from "../shared/format.js";

const REFRESH_MS = 5000;

/** Return the schedule, the list, which follows open retrainings while it is seen, and a button that starts one. */
export async function retrainingsPanel() {
  const place = h("div", { "aria-live": "polite" });
  const list = h("div");
  const button = h("button", { type: "button", on: { click: () => start(button, place, fill) } }, "Retrain on all measurements");
  let timer = 0;
  async function fill() {
    clearTimeout(timer);
    const rows = await ask("v1/retrainings?limit=20");
    list.replaceChildren(rows.length ? records(rows, place, fill) : h("p", { class: "hint" }, "None yet."));
    if (rows.some(isOpen)) timer = setTimeout(follow, REFRESH_MS);
  }
  function follow() {
    if (!list.isConnected) return;
    if (at("predictor").hidden) timer = setTimeout(follow, REFRESH_MS);
    else fill().catch((error) => {
      place.replaceChildren(problemBox(error));
      timer = setTimeout(follow, REFRESH_MS);
    });
  }
  const [schedule] = await Promise.all([ask("v1/retraining-schedule"), fill()]);
  return [h("p", {}, scheduleText(schedule)), list, h("div", { class: "row" }, button), place];
}

const scheduleText = ({ retrain_at: cron, next_at: next }) => (cron
  ? `The service retrains by itself at ${cron} (cron, UTC) if measurements were accepted or withdrawn since the last retraining; next ${moment(next)} local time.`
  : "The service does not retrain by itself; ROOFCAST_RETRAIN_AT schedules it.");

const isOpen = (r) => r.state === "queued" || r.state === "running";
const isCancellable = (r) => isOpen(r) && r.stage !== "registration";

const records = (rows, place, changed) => table("Latest first", {
  "Requested": (r) => moment(r.requested_at),
  "State": (r) => r.state,
  "Stage": (r) => (r.state === "running" ? stage(r) : ""),
  "Outcome": (r) => outcome(r),
  "": (r) => (isCancellable(r) ? h("button", { type: "button", on: { click: (event) => cancel(r.id, event.target, place, changed) } }, "Cancel") : ""),
}, rows);

const stage = (r) => (r.n_step ? `${r.stage}: ${r.n_step_done} of ${r.n_step}` : r.stage);

function outcome({ state, error, report }) {
  if (state === "failed" || state === "cancelled") return error;
  if (!report) return "";
  const verdict = report.promoted ?? report.is_promoted;
  const outcome = verdict === undefined ? "" : verdict ? "promoted" : "not promoted";
  return [outcome, report.reason, report.version && `version ${report.version}`, report.n_row && `${few(report.n_row)} rows`].filter(Boolean).join(", ");
}

const cancel = (id, button, place, changed) => act(button, place, changed, async () => {
  await ask(`v1/retrainings/${id}/cancellation`, { method: "POST" });
  return `Retraining ${id} is cancelled; a running one stops after the folds that it fits.`;
});

const start = (button, place, changed) => act(button, place, changed, async () => {
  const { id, state } = await ask("v1/retrainings", { method: "POST" });
  return `Retraining ${id} is ${state}; it takes minutes.`;
});

async function act(button, place, changed, request) {
  button.disabled = true;
  try {
    place.replaceChildren(h("p", { class: "success box" }, await request()));
    await changed();
  } catch (error) {
    place.replaceChildren(problemBox(error));
  } finally {
    button.disabled = false;
  }
}
