// Retrainings: when the service starts one by itself, those that wait, run and have ended; start and cancel.

import { at, h, problemBox, sayThenReload, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { few, moment } from "../shared/format.js";
import { latestOnly } from "../shared/latest.js";

const REFRESH_MS = 5000;

/** Return the filler of the panel; `promoted` is called once a followed retraining has brought a version into service. */
export function retrainingsPanel(promoted) {
  return async () => {
    const place = h("div", { "aria-live": "polite" });
    const list = h("div");
    const button = h("button", { type: "button", on: { click: () => start(button, place, fill) } }, "Retrain on all measurements");
    const show = listOfRetrainings(list, (id, target) => cancel(id, target, place, fill));
    const open = new Set();
    const latest = latestOnly();
    let timer = 0;
    function fill() {
      clearTimeout(timer);
      return latest(ask("v1/retrainings?limit=20"), fillWith);
    }
    function fillWith(rows) {
      show(rows);
      if (rows.some((r) => open.has(r.id) && isPromoted(r))) promoted();
      open.clear();
      rows.filter(isOpen).forEach((r) => open.add(r.id));
      if (open.size) timer = setTimeout(follow, REFRESH_MS);
    }
    function follow() {
      if (!list.isConnected) return;
      if (at("predictor").hidden) timer = setTimeout(follow, REFRESH_MS);
      else fill().catch((error) => {
        place.replaceChildren(problemBox(error));
        timer = setTimeout(follow, REFRESH_MS);
      });
    }
    const [schedule] = await Promise.all([ask("v1/retraining-schedule").then(scheduleText).catch((error) => `The schedule could not be read: ${error.message}.`), fill()]);
    return [h("p", {}, schedule), list, h("div", { class: "row" }, button), place];
  };
}

/** Return a function that shows rows in a list and replaces only those that changed: the others keep focus and buttons. */
function listOfRetrainings(list, cancelled) {
  const shown = new Map();
  let body = null;
  return (rows) => {
    if (!rows.length || !body) {
      const view = rows.length ? records([], cancelled) : h("p", { class: "hint" }, "None yet.");
      body = view.querySelector("tbody");
      list.replaceChildren(view);
    }
    if (!body) return;
    const lines = rows.map((r) => {
      const text = JSON.stringify(r);
      if (shown.get(r.id)?.text !== text) shown.set(r.id, { text, line: records([r], cancelled).querySelector("tbody > tr") });
      return shown.get(r.id).line;
    });
    [...body.children].filter((line) => !lines.includes(line)).forEach((line) => line.remove());
    lines.forEach((line, i) => { if (body.children[i] !== line) body.insertBefore(line, body.children[i] ?? null); });
  };
}

const scheduleText = ({ retrain_at: cron, next_at: next }) => (cron
  ? `The service retrains by itself at ${cron} (cron, UTC) if measurements were accepted or withdrawn since the last retraining; next ${moment(next)} local time.`
  : "The service does not retrain by itself; ROOFCAST_RETRAIN_AT schedules it.");

const isOpen = (r) => r.state === "queued" || r.state === "running";
const isCancellable = (r) => isOpen(r) && r.stage !== "registration";

const isPromoted = ({ report }) => Boolean(report?.promoted ?? report?.is_promoted);

const records = (rows, cancelled) => table("Latest first", {
  "Requested": (r) => moment(r.requested_at),
  "State": (r) => r.state,
  "Stage": (r) => (r.state === "running" ? stage(r) : ""),
  "Outcome": (r) => outcome(r),
  "": (r) => (isCancellable(r) ? h("button", { type: "button", on: { click: (event) => cancelled(r.id, event.target) } }, "Cancel") : ""),
}, rows);

const stage = (r) => (r.n_step ? `${r.stage}: ${r.n_step_done} of ${r.n_step}` : r.stage);

function outcome({ state, error, report }) {
  if (state === "failed" || state === "cancelled") return error;
  if (!report) return "";
  const verdict = report.promoted ?? report.is_promoted;
  const outcome = verdict === undefined ? "" : isPromoted({ report }) ? "promoted" : "not promoted";
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
    await sayThenReload(place, await request(), changed);
  } catch (error) {
    place.replaceChildren(problemBox(error));
  } finally {
    button.disabled = false;
  }
}
