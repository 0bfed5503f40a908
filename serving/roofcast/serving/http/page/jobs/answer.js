// An answer on training: a line of facts, warnings, the runs, the front of time and cost, near misses, assumptions.

import { at, copyButton, h, prose, table, warningBox } from "../shared/dom.js";
import { big, count, nameOf, percent, plural, usd } from "../shared/format.js";
import { showTrainingFront } from "../charts/job_front.js";
import { linkTo } from "../question/permalink.js";
import { hours, trainingCard } from "./cards.js";

const FIRST = 3;
const NARROW = matchMedia("(max-width: 40rem)");
const REASONS = {
  too_slow: "too slow", over_budget: "over the budget", may_not_fit: "may not fit", dearer: "dearer",
  too_few_nodes: "too few nodes", does_not_fit: "does not fit", excluded: "excluded",
};

/** Show an answer in place of the one before. */
export function showTraining(request, answer) {
  const { entries } = answer;
  const compared = `${count(answer.n_plan)} plans on ${count(answer.n_hardware)} sizes of hardware at ${count(answer.n_offer)} offers`;
  at("training-status").textContent = entries.length
    ? `${big(answer.total_token)} tokens in ${count(answer.n_step)} steps. ${plural(entries.length, "alternative")} of ${compared}, the cheapest first: ${usd(entries[0].cost_usd)} in ${hours(entries[0].hours)}.`
    : `None of ${compared} runs the job within ${limitsOf(request)} with a probability of ${percent(answer.confidence)}.`;
  const cards = entries.map((entry) => trainingCard(request, answer, entry));
  const frontPlace = h("div", { class: "chart", id: "training-front" });
  at("training-answer").replaceChildren(...[
    warningBox(answer.warnings),
    h("ol", { class: "cards" }, cards.slice(0, FIRST)),
    cards.length > FIRST ? h("details", { class: "more" }, h("summary", {}, plural(cards.length - FIRST, "more alternative")), h("ol", { class: "cards", start: FIRST + 1 }, cards.slice(FIRST))) : null,
    answer.pareto.length ? h("section", { class: "panel", "aria-label": "Chart" },
      h("figure", {}, h("figcaption", {}, "Cost against time", h("span", { class: "hint" }, " no other run is both faster and cheaper")), frontPlace)) : null,
    misses(answer),
    h("details", { class: "panel quiet" }, h("summary", {}, "What is assumed"),
      h("ul", {}, [...answer.assumptions, ...answer.defaults.length ? [`usual, as the job names no other: ${answer.defaults.join(", ")}`] : []].map((text) => h("li", {}, prose(text))))),
    h("footer", { class: "answer-foot" }, h("div", { class: "row" }, copyButton("Copy link", () => linkTo(request, "training"))),
      h("p", { class: "hint" }, `Predictor ${answer.predictor_version}`)),
  ].filter(Boolean));
  if (answer.pareto.length) showTrainingFront(frontPlace, answer);
}

function limitsOf({ deadline_h: deadline, budget_usd: budget }) {
  const limits = [deadline ? hours(deadline) : "", budget ? usd(budget) : ""].filter(Boolean);
  return limits.length ? limits.join(" and ") : "its memory";
}

function misses({ misses: rows, n_miss: n, entries }) {
  if (!rows.length) return null;
  return h("details", { class: "panel", id: "training-misses", open: !entries.length && !NARROW.matches },
    h("summary", {}, h("strong", {}, `Why not another? ${plural(n, "accelerator")} without an entry`)),
    table("The nearest miss of each accelerator, the cheapest first", {
      "Accelerator": (row) => nameOf(row.accelerator),
      "Reason": (row) => REASONS[row.reason] ?? row.reason,
      "Detail": (row) => row.detail,
      "Cost": (row) => (row.cost_usd === null ? "" : usd(row.cost_usd)),
      "Time": (row) => (row.hours === null ? "" : hours(row.hours)),
    }, rows));
}
