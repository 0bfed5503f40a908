// The form of a training job and the request that it stands for.

import { at, h } from "../shared/dom.js";
import { big, few, nameOf, usd } from "../shared/format.js";
import { chosen, picker } from "../question/constraints.js";
import { isModelShown, isNames, isNumber, keptFields } from "../question/kept.js";
import { buildSlider, readNumber, setShare, setSlider, shareOf } from "../question/sliders.js";

const TYPING_MS = 300;
const SLIDERS = ["n_token", "n_epoch", "n_token_per_sequence"];
const DEFAULTS = { n_epoch: 1, n_token_per_sequence: 2048 };
const USUAL_CONFIDENCE = 0.8;
const N_REJECTION = 100;
const LIMITS = ["deadline_h", "budget_usd"];
const LISTS = [
  ["providers", "Providers", (c) => c.providers.map((name) => [name, nameOf(name)])],
  ["regions", "Regions", (c) => c.regions.map((name) => [name, nameOf(name)])],
  ["vendors", "Vendors", (c) => c.vendors.map((name) => [name, name])],
  ["accelerators", "Accelerators", (c) => c.accelerators.map(({ id, name }) => [id, name])],
];
const METHODS = { full: "all weights", pretrain: "pretraining", lora: "LoRA", qlora: "QLoRA", adapter: "another adapter" };
/** Variants of the methods with adapters, the first of which is meant where none is named, and what their size counts. */
const VARIANTS = {
  lora: { "": ["LoRA", "Rank", 16], "lora-fa": ["LoRA-FA, which freezes one factor", "Rank", 16] },
  qlora: { "": ["LoRA", "Rank", 16], "lora-fa": ["LoRA-FA, which freezes one factor", "Rank", 16] },
  adapter: { bottleneck: ["bottlenecks", "Width", 64], "prompt-tuning": ["prompt tuning", "Virtual tokens", 100] },
};
const idOf = (field) => `job-${field}`;

/** What the form shows of a request, see `keptFields`. */
const SHOWN = {
  model: isModelShown,
  method: (name) => Object.hasOwn(METHODS, name),
  adapter: (name, { method }) => typeof name === "string" && Object.hasOwn(VARIANTS[method] ?? {}, name),
  adapter_rank: (value, { method }) => isNumber(value) && Object.hasOwn(VARIANTS, method),
  ...Object.fromEntries([...SLIDERS, ...LIMITS, "n_global_batch_sequence", "confidence"].map((name) => [name, isNumber])),
  n_rejection: (value) => value === N_REJECTION,
  constraints: {
    pricing: (names) => isNames(names) && names.every((name) => document.querySelector(`input[name=job-pricing][value="${CSS.escape(name)}"]`)),
    ...Object.fromEntries(LISTS.map(([field]) => [field, isNames])),
    max_nodes: isNumber,
  },
};

/** The form with the fields of a link that it does not show. */
export const job = keptFields("job-kept", { shown: () => SHOWN, read: readJob, write: writeJob });

/** Build the fields that need no answer of the service; `changed` is called after every change. */
export function buildJob(changed) {
  document.querySelectorAll("#job .slider").forEach(buildSlider);
  at("method").append(...Object.entries(METHODS).map(([value, name]) => h("option", { value }, name)));
  at("method").value = "qlora";
  for (const id of ["method", "adapter"]) at(id).addEventListener("input", showMethod);
  at("job").addEventListener("input", (event) => {
    if (!["job-model", "job-config", "job-config-name"].includes(event.target.id)) changed(event.target.type === "range" ? 0 : TYPING_MS);
  });
  at("job").addEventListener("change", () => changed());
  showMethod();
}

/** Fill in the names that `/v1/choices` lists. */
export function fillJobChoices(choices, changed) {
  at("job-pricing").replaceChildren(...choices.pricing.map((name) =>
    h("label", {}, h("input", { type: "checkbox", name: "job-pricing", value: name, checked: name === "on_demand" }), ` ${nameOf(name)}`)));
  at("job-constraints").replaceChildren(
    ...LISTS.map(([field, label, names]) => picker(idOf(field), label, names(choices), changed)),
    h("label", { class: "stack" }, "At most nodes", h("input", { id: "job-max_nodes", type: "number", min: 1, max: 128, value: 8 })));
}

/** Offer the variants of the method, and name what the size of the chosen one counts. */
function showMethod() {
  const variants = VARIANTS[at("method").value];
  at("variant-label").hidden = at("rank-label").hidden = !variants;
  if (!variants) return;
  if (at("adapter").dataset.method !== at("method").value) {
    at("adapter").replaceChildren(...Object.entries(variants).map(([value, [name]]) => h("option", { value }, name)));
    at("adapter").dataset.method = at("method").value;
  }
  const [, size, usual] = variants[at("adapter").value];
  if (at("rank-name").textContent !== size) at("adapter_rank").value = "";
  at("rank-name").textContent = size;
  at("adapter_rank").placeholder = usual;
}

/** Return the request of the form; throws if a pasted config.json is no JSON. */
function readJob() {
  const request = { model: readModel(), method: at("method").value, confidence: shareOf("job_confidence") };
  for (const name of SLIDERS) request[name] = readNumber(name);
  for (const name of LIMITS) if (at(name).value) request[name] = readNumber(name);
  if (at("n_global_batch_sequence").value) request.n_global_batch_sequence = Number(at("n_global_batch_sequence").value);
  if (!at("variant-label").hidden && at("adapter").value) request.adapter = at("adapter").value;
  if (!at("rank-label").hidden && at("adapter_rank").value) request.adapter_rank = Number(at("adapter_rank").value);
  request.constraints = { pricing: [...document.querySelectorAll("input[name=job-pricing]:checked")].map((box) => box.value) };
  for (const [field] of LISTS) if (chosen(idOf(field)).length) request.constraints[field] = chosen(idOf(field));
  request.n_rejection = N_REJECTION;
  if (at("job-max_nodes")?.value) request.constraints.max_nodes = Number(at("job-max_nodes").value);
  return request;
}

function readModel() {
  const text = at("job-config").value.trim();
  if (!text) return at("job-model").value.trim();
  try {
    return { name: at("job-config-name").value.trim() || "my-model", config: JSON.parse(text) };
  } catch (error) {
    throw new Error(`config.json is no JSON: ${error.message}`, { cause: error });
  }
}

/** Show a request in the form; its values are those that `SHOWN` admits. */
function writeJob(request) {
  const { model, constraints = {} } = request;
  at("job-config").value = "";
  if (model === undefined || typeof model === "string") at("job-model").value = model ?? at("job-model").value;
  else {
    at("job-config-name").value = model.name;
    at("job-config").value = JSON.stringify(model.config, null, 1);
    at("job-config-fold").open = true;
  }
  at("method").value = request.method ?? "full";
  for (const name of SLIDERS) setSlider(name, request[name] ?? DEFAULTS[name]);
  for (const name of [...LIMITS, "n_global_batch_sequence"]) at(name).value = request[name] ?? "";
  setShare("job_confidence", request.confidence ?? USUAL_CONFIDENCE);
  for (const box of document.querySelectorAll("input[name=job-pricing]")) {
    box.checked = (constraints.pricing ?? ["on_demand"]).includes(box.value);
  }
  for (const [field] of LISTS) {
    at(idOf(field))?.replaceChildren();
    (constraints[field] ?? []).forEach((name) => at(idOf(field))?.dispatchEvent(new CustomEvent("add-name", { detail: name })));
  }
  if (at("job-max_nodes")) at("job-max_nodes").value = constraints.max_nodes ?? 8;
  showMethod();
  const variants = VARIANTS[at("method").value] ?? {};
  at("adapter").value = request.adapter in variants ? request.adapter : Object.keys(variants)[0] ?? "";
  showMethod();
  at("adapter_rank").value = request.adapter_rank ?? "";
}

function methodText({ method, adapter }) {
  if (!adapter) return METHODS[method];
  return method === "adapter" ? VARIANTS.adapter[adapter]?.[0] ?? adapter : `${METHODS[method]} (${adapter})`;
}

/** Return the job of the form in a line, with the names of fields that it does not show. */
export function jobSummary() {
  const request = readJob();
  const name = typeof request.model === "string" ? request.model : request.model.name;
  const limits = [request.deadline_h ? `${few(request.deadline_h)} h` : "", request.budget_usd ? usd(request.budget_usd) : ""];
  return [name.split("/").at(-1), methodText(request), `${big(request.n_token * request.n_epoch)} tokens`, ...limits, ...job.names()].filter(Boolean).join(" · ");
}
