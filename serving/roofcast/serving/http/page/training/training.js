// The view of training: asks whenever the job changes, shows one answer or one problem.

import { at, problemBox } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { nameAccelerators } from "../shared/format.js";
import { listModels } from "../question/model.js";
import { keepInAddress, questionOfAddress } from "../question/permalink.js";
import { showTraining } from "./answer.js";
import { buildJob, fillJobChoices, jobSummary, readJob, writeJob } from "./job.js";

const VIEW = "training";
let timer = 0;
let isRunning = false;
let isWaiting = false;

/** Build the view and answer the job of the address, or the one in the form. */
export async function start() {
  buildJob(changed);
  at("job").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  addEventListener("hashchange", readAddress);
  if (matchMedia("(max-width: 60rem)").matches) at("job-fold").open = false;
  await load();
}

/** Load the names of the service, then answer; again after a key was entered. */
export async function load() {
  try {
    const choices = await ask("v1/choices");
    nameAccelerators(choices.accelerators);
    if (!at("job-pricing").children.length) fillJobChoices(choices, changed);
    if (!readAddress()) submit();
    if (!at("models").children.length) listModels(await ask("v1/models"));
  } catch (error) {
    show(problemBox(error));
  }
}

function readAddress() {
  const request = questionOfAddress(VIEW);
  if (request) {
    writeJob(request, changed);
    submit();
  }
  return request !== null;
}

/** Ask again after a change: `wait_ms` later, and only once the answer under way has come. */
function changed(wait_ms = 0) {
  at("training-answer").classList.add("outdated");
  clearTimeout(timer);
  timer = setTimeout(submit, wait_ms);
}

/** Answer the job of the form; one request is under way at a time, the latest job follows it. */
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
    const request = readJob();
    at("job-summary").textContent = jobSummary(request);
    const answer = await ask("v1/training/recommendations", { body: request });
    if (location.hash.startsWith(`#/${VIEW}`)) keepInAddress(request, VIEW);
    at("training-problem").replaceChildren();
    showTraining(request, answer);
  } catch (error) {
    show(problemBox(error));
  }
}

function show(problem) {
  at("training-answer").replaceChildren();
  at("training-status").textContent = "";
  at("training-problem").replaceChildren(problem);
}

function setBusy(isBusy) {
  at("training-results").setAttribute("aria-busy", isBusy);
  at("training-progress").hidden = !isBusy;
  at("training-answer").classList.toggle("outdated", isBusy);
}
