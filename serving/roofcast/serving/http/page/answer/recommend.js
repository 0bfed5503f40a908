// The view of a recommendation: asks whenever the question changes, shows one answer or one problem.

import { at, problemBox } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { nameAccelerators } from "../shared/format.js";
import { listModels } from "../question/model.js";
import { keepInAddress, questionOfAddress } from "../question/permalink.js";
import { buildForm, fillChoices, fillStacks, readQuestion, summary, writeQuestion } from "../question/question.js";
import { showAnswer } from "./answer.js";

let timer = 0;
let isRunning = false;
let isWaiting = false;

/** Build the view and answer the question of the address, or the one in the form. */
export async function start() {
  buildForm(changed);
  at("question").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  addEventListener("hashchange", readAddress);
  if (matchMedia("(max-width: 60rem)").matches) at("question-fold").open = false;
  await load();
}

/** Load the names of the service, then answer; again after a key was entered. */
export async function load() {
  try {
    const choices = await ask("v1/choices");
    nameAccelerators(choices.accelerators);
    if (!at("pricing").children.length) fillChoices(choices, changed);
    fillStacks(...await Promise.all(["v1/stacks", "v1/measured-stacks"].map((path) => ask(path).catch(() => []))));
    if (!readAddress()) submit();
    listModels(await ask("v1/models"));
  } catch (error) {
    show(problemBox(error));
  }
}

function readAddress() {
  const request = questionOfAddress();
  if (request) {
    writeQuestion(request, changed);
    submit();
  }
  return request !== null;
}

/** Ask again after a change: `wait_ms` later, and only once the answer under way has come. */
function changed(wait_ms = 0) {
  at("answer").classList.add("outdated");
  clearTimeout(timer);
  timer = setTimeout(submit, wait_ms);
}

/** Answer the question of the form; one request is under way at a time, the latest question follows it. */
async function submit() {
  clearTimeout(timer);
  isWaiting = true;
  if (isRunning) return;
  isRunning = true;
  setBusy(true);
  while (isWaiting) {
    isWaiting = false;
    await answerOnce();
  }
  isRunning = false;
  setBusy(false);
}

async function answerOnce() {
  try {
    const request = readQuestion();
    at("question-summary").textContent = summary(request);
    const answer = await ask("v1/recommendations", { body: request });
    keepInAddress(request);
    at("problem").replaceChildren();
    showAnswer(request, answer);
  } catch (error) {
    show(problemBox(error));
  }
}

function show(problem) {
  at("answer").replaceChildren();
  at("status").textContent = "";
  at("problem").replaceChildren(problem);
}

function setBusy(isBusy) {
  at("results").setAttribute("aria-busy", isBusy);
  at("progress").hidden = !isBusy;
  if (!isBusy) at("answer").classList.remove("outdated");
  else at("answer").classList.add("outdated");
}
