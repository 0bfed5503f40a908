// An answer: a line of facts, warnings, the alternatives, two charts, and why the others are not among them.

import { ask } from "../shared/api.js";
import { at, copyButton, download, h, warningBox } from "../shared/dom.js";
import { count, percent, plural, usd } from "../shared/format.js";
import { showConfidence } from "../charts/confidence.js";
import { showPareto } from "../charts/pareto.js";
import { linkTo } from "../question/permalink.js";
import { csvOf } from "./csv.js";
import { card, fleetCard } from "./cards.js";
import { compareBar } from "./compare.js";
import { levers } from "./levers.js";
import { rejections } from "./rejections.js";

const FIRST = 3;
const NARROW = matchMedia("(max-width: 40rem)");

/** Show an answer in place of the one before. */
export function showAnswer(request, answer) {
  const { entries } = answer;
  at("status").dataset.answer = answer.id;
  at("status").textContent = entries.length
    ? `${plural(entries.length, "alternative")} of ${count(answer.n_configuration)} configurations at ${count(answer.n_offer)} offers, the cheapest first. The cheapest costs ${usd(entries[0].cost_usd_per_month)} per month.`
    : noEntry(request, answer);
  const bar = compareBar(entries);
  const cards = entries.map((entry) => card(request, answer, entry, bar));
  const paretoPlace = h("div", { class: "chart", id: "pareto" });
  const confidencePlace = h("div", { class: "chart", id: "confidence-chart" });
  at("answer").replaceChildren(...[
    echo(request, answer), warningBox(answer.warnings),
    fleetCard(answer),
    h("ol", { class: "cards" }, cards.slice(0, FIRST)),
    cards.length > FIRST ? h("details", { class: "more" }, h("summary", {}, `${plural(cards.length - FIRST, "more alternative")}`), h("ol", { class: "cards", start: FIRST + 1 }, cards.slice(FIRST))) : null,
    levers(answer),
    answer.pareto.length ? h("section", { class: "panel figures", "aria-label": "Charts" },
      h("figure", {}, h("figcaption", {}, "Cost against latency", h("span", { class: "hint" }, " choose a point to see it")), paretoPlace),
      h("details", { open: !NARROW.matches, on: { toggle: (event) => { if (event.target.open && !confidencePlace.children.length) showConfidence(confidencePlace, answer); } } },
        h("summary", {}, h("strong", {}, "Cost of confidence"), h("span", { class: "hint" }, " what more certainty costs")), confidencePlace)) : null,
    rejections(request, answer),
    footer(request, answer),
    bar.element,
  ].filter(Boolean));
  if (answer.pareto.length) {
    showPareto(paretoPlace, answer);
    if (!NARROW.matches) showConfidence(confidencePlace, answer);
  }
}

/** Say why there is no entry; where the budget alone fails, say what would do. */
function noEntry(request, answer) {
  const budget = request.constraints?.max_usd_per_h;
  const isOverBudget = budget !== undefined && answer.families.some(({ reason }) => reason === "over_budget");
  if (!isOverBudget) return `None of ${count(answer.n_configuration)} configurations meets the limits with a confidence of ${percent(answer.confidence)}.`;
  nameBudget(request, answer);
  return `No deployment that meets the limits costs ${usd(budget)} per hour or less.`;
}

/** Ask the same question without its budget, and add to the status what the cheapest deployment costs. */
async function nameBudget(request, answer) {
  const { max_usd_per_h: _, ...constraints } = request.constraints;
  const { entries: [first] } = await ask("v1/recommendations", { body: { ...request, constraints, n_entry: 1 } });
  if (first && at("status").dataset.answer === answer.id) at("status").append(` ${usd(first.cost_usd_per_h)} per hour (${usd(first.cost_usd_per_month)} per month) would do.`);
}

/** Which model and load were meant, and how far the stack moves the answer, where it says so. */
function echo(request, answer) {
  const isRead = typeof request.model === "string" && request.model.toLowerCase() !== answer.model.toLowerCase();
  const texts = [isRead ? `${request.model} is read as ${answer.model}` : "", answer.load?.text, answer.stack_effect].filter(Boolean);
  return texts.length ? h("p", { class: "hint", id: "load" }, texts.join("; ")) : null;
}

function footer(request, answer) {
  const { basis } = answer;
  const save = (name, type, text) => h("button", { type: "button", on: { click: () => download(name, type, text()) } }, `Save ${name.split(".").at(-1).toUpperCase()}`);
  return h("footer", { class: "answer-foot" },
    h("div", { class: "row" },
      copyButton("Copy link", () => linkTo(request)),
      save(`roofcast-${answer.id}.csv`, "text/csv", () => csvOf(answer.entries)),
      save(`roofcast-${answer.id}.json`, "application/json", () => JSON.stringify({ request, answer }, null, 1))),
    h("p", { class: "hint" }, `Answer ${answer.id}, predictor ${basis.predictor_version}, roofcast ${basis.package_version}`,
      basis.prices_as_of ? `, prices up to ${basis.prices_as_of}` : ""));
}
