// The form and the request that it stands for.

import { at, h, prose } from "../shared/dom.js";
import { few, nameOf } from "../shared/format.js";
import { SHOWN_CONSTRAINTS, buildConstraints, readConstraints, writeConstraints } from "./constraints.js";
import { isModelShown, isNames, isNumber, keptFields } from "./kept.js";
import { addLimit, readLimits, writeLimits } from "./limits.js";
import { bindModel, isModel, readModel, writeModel } from "./model.js";
import { buildSlider, readNumber as number, setShare, setSlider, shareOf } from "./sliders.js";

const LENGTHS = ["n_input_token", "n_output_token"];
const USUAL = "chat";
const USUAL_CONFIDENCE = 0.8;
const TYPING_MS = 300;
const NO_THINK_TIME = "It states no think time: with 0 s each user always has a request in flight. ";
const presets = new Map();
const presetOf = (name) => presets.get(name?.trim().toLowerCase().replaceAll("-", "_"));
const OF_NO_LOAD = ["tokens", "throughput"];
const isOfUsers = (value, workload) => isNumber(value) && !("request_rate_per_s" in workload);

/** Fields whose first option is what a request without them means. */
const CHOSEN = ["objective", "stack", "operator"];
const usualOf = (name) => at(name).options[0]?.value ?? "";
const hasOption = (id, name) => [...at(id).options].some(({ value }) => value === name);

/** What the form shows of a request, see `keptFields`. */
const SHOWN = {
  model: isModelShown,
  workload: {
    preset: (name) => typeof name === "string" && presetOf(name) !== undefined,
    ...Object.fromEntries([...LENGTHS, "request_rate_per_s"].map((name) => [name, isNumber])),
    users: isOfUsers, think_time_s: isOfUsers,
  },
  limits: isNames,
  confidence: isNumber,
  objective: (name) => hasOption("objective", name),
  stack: (name) => hasOption("stack", name),
  operator: (name) => hasOption("operator", name),
  constraints: SHOWN_CONSTRAINTS,
};

/** The form with the fields of a link that it does not show. */
export const question = keptFields("kept", { shown: () => SHOWN, read: readQuestion, write: writeQuestion });
const kind = () => document.querySelector("input[name=kind]:checked").value;

/** Build the fields that need no answer of the service; `changed` is called after every change. */
export function buildForm(changed) {
  document.querySelectorAll("#question .slider").forEach(buildSlider);
  addLimit("ttft", changed);
  addLimit("tpot", changed);
  at("preset").addEventListener("change", choosePreset);
  for (const radio of document.querySelectorAll("input[name=kind]")) radio.addEventListener("change", showKind);
  at("objective").addEventListener("change", chooseObjective);
  for (const name of LENGTHS) {
    for (const id of [name, `${name}-range`]) at(id).addEventListener("input", (event) => { if (event.isTrusted) leavePreset(); });
  }
  bindModel(at("question"), changed);
  at("question").addEventListener("input", (event) => { if (isWhole(event.target)) changed(event.target.type === "range" ? 0 : TYPING_MS); });
  at("question").addEventListener("change", () => changed());
}

/** Fill in the names that `/v1/choices` lists. */
export function fillChoices(choices, changed) {
  presets.clear();
  for (const preset of choices.presets) presets.set(preset.name, preset);
  at("preset").append(...choices.presets.map(({ name }) => h("option", { value: name }, name.replaceAll("_", " "))));
  at("objective").append(...choices.objectives.map((name) => h("option", { value: name }, nameOf(name))));
  at("operator").append(...choices.operators.map((name) => h("option", { value: name }, nameOf(name))));
  buildConstraints(choices, changed);
  at("preset").value = presets.has(USUAL) ? USUAL : "";
  choosePreset();
}

/** Offer the stack profiles that the caller may read, then measured stacks that no profile's name hides. */
export function fillStacks(profiles, measured) {
  const chosen = at("stack").value;
  const others = measured.filter(({ name }) => profiles.every((one) => one.name !== name));
  const option = ({ name, n_row }) => h("option", { value: name }, `${name} (${few(n_row)} rows)`);
  const group = (label, stacks) => stacks.length ? [h("optgroup", { label }, stacks.map(option))] : [];
  at("stack").replaceChildren(h("option", { value: "" }, "none"), ...group("Profiles of own runs", profiles), ...group("Measured stacks", others));
  at("stack").value = [...profiles, ...others].some(({ name }) => name === chosen) ? chosen : "";
  at("own-runs").hidden = !profiles.length && !others.length;
}

/** Whether the form offers a stack, and ask again with it. */
export const isStack = (name) => name !== "" && hasOption("stack", name);
export function chooseStack(name) {
  at("stack").value = name;
  at("stack").dispatchEvent(new Event("change", { bubbles: true }));
}

/** Whether a field can be read while it is being typed; a name can once it is one of the catalogue. */
const isWhole = (field) => !["model", "config", "config-name"].includes(field.id) || isKnown(field);
const isKnown = (field) => field.id === "model" && isModel(field.value);

function choosePreset() {
  const preset = presets.get(at("preset").value);
  if (preset) {
    for (const name of LENGTHS) setSlider(name, preset[name]);
    setSlider("think_time_s", usualThinkTime());
  }
  showPreset();
}

function leavePreset() {
  at("preset").value = "";
  showPreset();
}

function showPreset() {
  const preset = presets.get(at("preset").value);
  at("preset-facts").replaceChildren(...(preset
    ? [...prose(`${preset.meaning}: ${preset.basis}, ${preset.observed}. ${preset.think_time_s ? "" : NO_THINK_TIME}`), h("a", { href: preset.source, rel: "noreferrer" }, "Source")] : []));
}

/** Leave the load out where the objective makes replicas as busy as pays. */
function chooseObjective() {
  if (OF_NO_LOAD.includes(at("objective").value)) chooseKind("none");
  showKind();
}

const chooseKind = (name) => { document.querySelector(`input[name=kind][value=${name}]`).checked = true; };

function showKind() {
  for (const one of ["users", "request_rate_per_s"]) slider(one).hidden = one !== kind();
  slider("think_time_s").hidden = kind() !== "users";
}

/** The think time in seconds of a request that names none: its preset's, otherwise none. */
const usualThinkTime = () => presets.get(at("preset").value)?.think_time_s ?? 0;

const slider = (name) => document.querySelector(`.slider[data-name=${name}]`);

/** Return the request of the form; throws if a pasted config.json is no JSON. */
function readQuestion() {
  const workload = kind() === "none" ? {} : { [kind()]: number(kind()) };
  if (kind() === "users" && number("think_time_s") !== usualThinkTime()) workload.think_time_s = number("think_time_s");
  const preset = presets.get(at("preset").value);
  if (preset) workload.preset = preset.name;
  for (const name of LENGTHS) if (number(name) !== preset?.[name]) workload[name] = number(name);
  const request = { model: readModel(), workload, limits: readLimits(), confidence: shareOf("confidence"), constraints: readConstraints() };
  for (const name of CHOSEN) if (at(name).value !== usualOf(name)) request[name] = at(name).value;
  return request;
}

/** Show a request in the form; its values are those that `SHOWN` admits. */
function writeQuestion(request, changed) {
  const { workload = {} } = request;
  writeModel(request.model);
  at("preset").value = presetOf(workload.preset)?.name ?? "";
  chooseKind(["request_rate_per_s", "users"].find((name) => name in workload) ?? "none");
  choosePreset();
  for (const name of ["users", "request_rate_per_s", ...LENGTHS]) setSlider(name, workload[name]);
  setSlider("think_time_s", workload.think_time_s ?? usualThinkTime());
  if (request.limits) writeLimits(request.limits, changed);
  setShare("confidence", request.confidence ?? USUAL_CONFIDENCE);
  for (const name of CHOSEN) at(name).value = request[name] ?? usualOf(name);
  writeConstraints(request.constraints ?? {}, changed);
  showKind();
}

/** Return the lengths of the request in tokens, those of the preset included; of percentiles the median, or the next one. */
export function lengthsOf(workload) {
  const preset = presetOf(workload.preset) ?? {};
  const one = (length) => (isNumber(length) ? length : length.p50 ?? Object.values(length)[0]);
  return Object.fromEntries(LENGTHS.map((name) => [name, one(workload[name] ?? preset[name])]));
}

/** Return the question of the form in a line, with the names of fields that it does not show. */
export function summary() {
  const request = readQuestion();
  const { workload } = request;
  const name = typeof request.model === "string" ? request.model : request.model.name;
  const load = kind() === "none" ? "no load" : workload.users ? `${few(workload.users)} users` : `${few(workload.request_rate_per_s)} requests/s`;
  return [name.split("/").at(-1), load, ...request.limits.map(words), ...question.names()].join(" · ");
}

const words = (limit) => limit.replace("throughput_per_user", "tokens/s of a user").replace(/^(ttft|tpot|itl|e2e)/, (metric) => metric.toUpperCase()).replace(":", " ").replace("<=", " ≤ ").replace(">=", " ≥ ").replace(/(\d)(ms|s)$/, "$1 $2");
