// The view of a recommendation: the question, its answer, and the names of the service.

import { at } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { registerNames } from "../shared/format.js";
import { latestOnly } from "../shared/latest.js";
import { questionView } from "../shared/question_view.js";
import { listModels } from "../question/model.js";
import { keepInAddress, questionOfAddress } from "../question/permalink.js";
import { buildForm, fillChoices, fillStacks, question, summary } from "../question/question.js";
import { showAnswer } from "./answer.js";

const ID = {
  form: "question", fold: "question-fold", summary: "question-summary", answer: "answer", status: "status",
  problem: "problem", results: "results", progress: "progress",
};
const view = questionView(ID, {
  path: "v1/recommendations",
  ...question,
  find: () => questionOfAddress(),
  keep: (request) => keepInAddress(request),
  describe: summary,
  show: showAnswer,
});

const latestStacks = latestOnly();
const latestModels = latestOnly();

/** Build the view and answer the question of the address, or the one in the form. */
export async function start() {
  buildForm(view.changed);
  view.listen();
  await load();
}

/** Load the names of the service, then answer; again after a key was entered. */
export async function load() {
  try {
    const choices = await ask("v1/choices");
    registerNames(choices);
    const isFirst = !at("pricing").children.length;
    if (isFirst) fillChoices(choices, view.changed);
    await latestStacks(Promise.all(["v1/stacks", "v1/measured-stacks"].map((path) => ask(path).catch(() => []))), (stacks) => fillStacks(...stacks));
    if (!isFirst || !view.readAddress()) view.submit();
    await latestModels(ask("v1/models"), listModels);
  } catch (error) {
    view.fail(error);
  }
}
