// The view of a recommendation: asks whenever the question changes, shows one answer or one problem.

import { at, h, problemBox } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { nameAccelerators } from "../shared/format.js";
import { listModels } from "../question/model.js";
import { keepInAddress, questionOfAddress } from "../question/permalink.js";
import { buildForm, fillChoices, fillStacks, readQuestion, summary, writeQuestion } from "../question/question.js";
import { showAnswer } from "./answer.js";

const WAIT_MS = 120;
let timer = 0;
let running = null;

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
    fillStacks(await ask("v1/stacks").catch(() => []));
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

function changed() {
  at("answer").classList.add("outdated");
  clearTimeout(timer);
  timer = setTimeout(submit, WAIT_MS);
}

async function submit() {
  clearTimeout(timer);
  running?.abort();
  const current = running = new AbortController();
  try {
    const request = readQuestion();
    at("question-summary").textContent = summary(request);
    setBusy(true);
    const answer = await ask("v1/recommendations", { body: request, signal: current.signal });
    keepInAddress(request);
    at("problem").replaceChildren();
    showAnswer(request, answer);
  } catch (error) {
    if (error.name === "AbortError") return;
    show(problemBox(error));
  } finally {
    if (current === running) setBusy(false);
  }
}

function show(problem) {
  at("answer").replaceChildren();
  at("status").textContent = "";
  at("problem").replaceChildren(problem ?? h("span"));
}

function setBusy(isBusy) {
  at("results").setAttribute("aria-busy", isBusy);
  at("progress").hidden = !isBusy;
  if (!isBusy) at("answer").classList.remove("outdated");
  else at("answer").classList.add("outdated");
}
