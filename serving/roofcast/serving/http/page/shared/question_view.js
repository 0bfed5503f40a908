// The part that views of questions share: ask whenever the form changes, show one answer or one problem.

import { ask } from "./api.js";
import { at, h, problemBox } from "./dom.js";

/**
 * Return the handlers of a view: `changed`, `submit`, `readAddress`, `fail` and `listen`.
 *
 * `id` names the elements form, fold, summary, answer, status, problem, results and progress; `path` answers what `read`
 * reads from the form, `find` reads from the address, `keep` writes there, and `show` shows.
 */
export function questionView(id, { path, read, write, find, keep, describe, show }) {
  let timer = 0;
  let isRunning = false;
  let isWaiting = false;
  let unreadable = null;
  let isOutdated = false;

  const dim = (isDim) => at(id.answer).classList.toggle("outdated", isDim);

  /** Ask again after a change: `wait_ms` later, and only once the answer under way has come. */
  function changed(wait_ms = 0) {
    dim(true);
    clearTimeout(timer);
    timer = setTimeout(submit, wait_ms);
  }

  /**
   * Answer the question of the form; one request is under way at a time, the latest question follows it.
   *
   * While a slider moves, the answer under way is shown as outdated; neither its address nor its failure outlives a later question.
   */
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
      const error = unreadable;
      unreadable = null;
      if (error) throw error;
      unmark();
      const request = read();
      at(id.summary).textContent = describe();
      const answer = await ask(path, { body: request });
      if (!isWaiting) keep(request);
      at(id.problem).replaceChildren();
      show(request, answer);
    } catch (error) {
      if (error.field instanceof HTMLElement) mark(error);
      else if (!isWaiting) fail(error);
    }
  }

  /** Mark a field that cannot be read; the last answer stays, dimmed, until the field is whole. */
  function mark({ field, message }) {
    isOutdated = true;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-errormessage", id.problem);
    at(id.problem).replaceChildren(h("p", { class: "hint" }, `${message}. The answer below is of the question before.`));
  }

  function unmark() {
    isOutdated = false;
    at(id.form).querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
  }

  /** Answer the question of the address, or say that it cannot be read; return whether it has one. */
  function readAddress() {
    try {
      const request = find();
      if (request === null) return false;
      write(request, changed);
    } catch (error) {
      unreadable = error;
    }
    submit();
    return true;
  }

  function fail(error) {
    at(id.answer).replaceChildren();
    at(id.status).textContent = "";
    at(id.problem).replaceChildren(problemBox(error));
  }

  function setBusy(isBusy) {
    at(id.results).setAttribute("aria-busy", isBusy);
    at(id.progress).hidden = !isBusy;
    dim(isBusy || isOutdated);
  }

  function listen() {
    at(id.form).addEventListener("submit", (event) => { event.preventDefault(); submit(); });
    addEventListener("hashchange", readAddress);
    if (matchMedia("(max-width: 60rem)").matches) at(id.fold).open = false;
  }

  return { changed, submit, readAddress, fail, listen };
}
