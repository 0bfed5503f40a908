// The model: a name of the catalogue, or a config.json that is pasted, chosen or dropped.

import { at, h } from "../shared/dom.js";
import { big, nameOf } from "../shared/format.js";

const models = new Map();
const ownName = (file) => (file.name.replace(/\.json$/i, "") === "config" ? "" : file.name.replace(/\.json$/i, ""));

/** List the models of `/v1/models` for the search. */
export function listModels(list) {
  models.clear();
  for (const model of list) models.set(model.id.toLowerCase(), model);
  at("models").replaceChildren(...list.map((model) => h("option", { value: model.id })));
  showFacts();
}

/** Whether the catalogue has a model of this name. */
export const isModel = (name) => models.has(name.trim().toLowerCase());

/** Return the model as the API reads it; throws if the pasted text is no JSON object. */
export function readModel() {
  const text = at("config").value.trim();
  if (!text) return at("model").value.trim();
  return { name: at("config-name").value.trim() || "my-model", config: parse(text) };
}

/** Show a model of a request; without one that the fields can show, the name stays. */
export function writeModel(model = at("model").value) {
  if (typeof model === "string") {
    at("model").value = model;
    at("config").value = "";
  } else {
    at("config-name").value = model.name;
    at("config").value = JSON.stringify(model.config, null, 1);
    at("config-fold").open = true;
  }
  showFacts();
}

function parse(text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw new Error(`config.json is no JSON: ${error.message}`, { cause: error });
  }
  if (typeof config !== "object" || config === null || Array.isArray(config)) throw new Error("config.json must be a JSON object");
  return config;
}

function showFacts() {
  const isOwn = at("config").value.trim() !== "";
  const model = models.get(at("model").value.trim().toLowerCase());
  at("model").disabled = isOwn;
  const problem = isOwn ? problemOf(at("config").value) : "";
  at("config-problem").textContent = problem;
  if (isOwn) at("model-facts").textContent = `The pasted config.json of ${at("config-name").value} is used.`;
  else if (!model) at("model-facts").textContent = models.size ? "Not a listed name: the answer says which model it is read as. A config.json can be pasted below." : "";
  else {
    const active = model.n_param_active < model.n_param ? `, ${big(model.n_param_active)} active` : "";
    at("model-facts").textContent = `${big(model.n_param)} parameters${active}, ${nameOf(model.weight_precision)}, context ${big(model.max_context_token)} tokens`;
  }
}

function problemOf(text) {
  try {
    parse(text);
    return "";
  } catch (error) {
    return error.message;
  }
}

async function readFile(file, changed) {
  at("config").value = await file.text();
  at("config-name").value = ownName(file) || at("config-name").value;
  at("config-fold").open = true;
  showFacts();
  changed();
}

/** Listen to the fields and to files dropped on the form. */
export function bindModel(form, changed) {
  for (const id of ["model", "config", "config-name"]) at(id).addEventListener("input", showFacts);
  at("config-file").addEventListener("change", () => {
    const [file] = at("config-file").files;
    if (file) readFile(file, changed);
    at("config-file").value = ""; // the same file can be chosen again
  });
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("dropping"); });
  form.addEventListener("dragleave", () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    if (event.dataTransfer.files[0]) readFile(event.dataTransfer.files[0], changed);
  });
}
