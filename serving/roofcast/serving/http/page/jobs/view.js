// The view of training: the job, its answer, and the names of the service.

import { at } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { registerNames } from "../shared/format.js";
import { questionView } from "../shared/question_view.js";
import { listModels } from "../question/model.js";
import { keepInAddress, questionOfAddress } from "../question/permalink.js";
import { showTraining } from "./answer.js";
import { buildJob, fillJobChoices, job, jobSummary } from "./job.js";

const VIEW = "training";
const ID = {
  form: "job", fold: "job-fold", summary: "job-summary", answer: "training-answer", status: "training-status",
  problem: "training-problem", results: "training-results", progress: "training-progress",
};
const view = questionView(ID, {
  path: "v1/training/recommendations",
  ...job,
  find: () => questionOfAddress(VIEW),
  keep: (request) => keepInAddress(request, VIEW),
  describe: jobSummary,
  show: showTraining,
});

/** Build the view and answer the job of the address, or the one in the form. */
export async function start() {
  buildJob(view.changed);
  view.listen();
  await load();
}

/** Load the names of the service, then answer; again after a key was entered. */
export async function load() {
  try {
    const choices = await ask("v1/choices");
    registerNames(choices);
    const isFirst = !at("job-pricing").children.length;
    if (isFirst) fillJobChoices(choices, view.changed);
    if (!isFirst || !view.readAddress()) view.submit();
    if (!at("models").children.length) listModels(await ask("v1/models"));
  } catch (error) {
    view.fail(error);
  }
}
