// Import of benchmark files: checked first, stored then.

import { h, problemBox, prose, table } from "../shared/dom.js";
import { uploadFile } from "../shared/api.js";
import { count, plural } from "../shared/format.js";
import { driftPanel } from "./drift.js";

const MISSING = "A benchmark client does not know the hardware behind the address it measures: name it here.";

/** Return the form; `imported` is called once rows are stored. */
export function uploadPanel(imported) {
  const files = h("input", { type: "file", multiple: true, "aria-label": "Benchmark files" });
  const campaign = h("input", { placeholder: "the format's name", maxlength: 200 });
  const values = h("textarea", { rows: 2, placeholder: "accelerator=nvidia-h100-sxm-80gb\nn_accelerator=1", spellcheck: "false" });
  const claim = h("input", { type: "checkbox" });
  const place = h("div", { "aria-live": "polite" });
  const form = { settings, place, hold, imported };
  const drop = h("div", { class: "drop" }, h("p", {}, "Drop files of vLLM, SGLang, TensorRT-LLM, llama-bench, GuideLLM, AIPerf, inference-perf, InferenceX, MLPerf or CSV here"), h("label", { class: "beside" }, "or choose them ", files));
  function settings() {
    return { campaign: campaign.value.trim(), values: values.value.split("\n").map((line) => line.trim()).filter(Boolean), isClaim: claim.checked };
  }
  function hold(isHeld) {
    files.disabled = isHeld;
  }
  files.addEventListener("change", () => {
    check(files.files, form);
    files.value = ""; // the same file can be chosen again
  });
  for (const kind of ["dragover", "dragenter"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("dropping"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("dropping"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("dropping"); if (!files.disabled) check(event.dataTransfer.files, form); });
  return [
    drop,
    h("div", { class: "columns" },
      h("label", { class: "stack" }, "Campaign", campaign),
      h("label", { class: "stack" }, "Values that the files do not hold, one COLUMN=VALUE a line", values, h("span", { class: "hint" }, MISSING))),
    h("label", { class: "beside" }, claim, "Claim rows that another key imported, with a key of the scope admin"),
    place,
  ];
}

/** Check every file without storing, then offer to store those that are sound; files that are chosen later take the place of these. */
async function check(files, form) {
  const bar = h("progress", { max: files.length, value: 0, "aria-label": "Files checked" });
  const place = h("div", {}, bar);
  form.place.replaceChildren(place);
  const settings = form.settings();
  const results = [];
  for (const file of [...files]) {
    results.push({ file, ...(await send(file, settings, true)) });
    bar.value = results.length;
  }
  const sound = results.filter((one) => one.added);
  const store = h("button", { type: "button", class: "primary", on: { click: () => storeAll(sound, settings, place, form) } }, offer(sound));
  place.replaceChildren(report("Checked, nothing is stored yet", results), offer(sound) ? store : "");
}

/** Return what storing checked files does; nothing if it changes nothing. */
function offer(results) {
  const [n_new, n_claimed] = ["n_new", "n_claimed"].map((name) => results.reduce((sum, one) => sum + one.added[name], 0));
  return [n_new && `Store ${plural(n_new, "new row")}`, n_claimed && `Claim ${plural(n_claimed, "row")} stored before`].filter(Boolean).join(", ");
}

/** Store checked files; no others can be chosen until their report is shown. */
async function storeAll(results, settings, place, { hold, imported }) {
  const bar = h("progress", { max: results.length, value: 0, "aria-label": "Files stored" });
  place.replaceChildren(bar);
  hold(true);
  const stored = [];
  for (const { file } of results) {
    stored.push({ file, ...(await send(file, settings, false)) });
    bar.value = stored.length;
  }
  hold(false);
  place.replaceChildren(report("Stored", stored), ...stored.flatMap(({ added }) => driftPanel(added?.drift)));
  imported();
}

async function send(file, settings, isDryRun) {
  try {
    return { added: await uploadFile(file, { ...settings, isDryRun }) };
  } catch (error) {
    return { error };
  }
}

function report(title, results) {
  return h("div", {},
    table(title, {
      "File": (r) => r.file.name,
      "Format": (r) => r.added?.format ?? "",
      "Rows": (r) => (r.added ? count(r.added.n_row) : "none"),
      "New": (r) => (r.added ? count(r.added.n_new) : ""),
      "Stored before": (r) => (r.added ? count(r.added.n_known) : ""),
      "Failed runs": (r) => (r.added ? count(r.added.n_failed_run) : ""),
    }, results),
    results.flatMap(({ added }) => (added?.warnings ?? []).map((text) => h("p", { class: "warning box" }, prose(text)))),
    results.filter((one) => one.error).map(({ error }) => problemBox(error)));
}
