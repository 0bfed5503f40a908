// Constraints on hardware and offers, from the names that the service knows, and the nodes that one owns.

import { at, h } from "../shared/dom.js";
import { nameOf } from "../shared/format.js";
import { isNames, isNumber } from "./kept.js";

/** Fields of `constraints` with a list of names: the field, its label, and the names in `/v1/choices`. */
const LISTS = [
  ["providers", "Providers", (c) => c.providers.map((name) => [name, nameOf(name)])],
  ["regions", "Regions", (c) => c.regions.map((name) => [name, nameOf(name)])],
  ["vendors", "Vendors", (c) => c.vendors.map((name) => [name, name])],
  ["accelerators", "Accelerators", (c) => c.accelerators.map(({ id, name }) => [id, name])],
  ["engines", "Engines", (c) => c.engines.map((name) => [name, nameOf(name)])],
  ["weight_precisions", "Precisions of the weights", (c) => c.weight_precisions.map((name) => [name, nameOf(name)])],
  ["speculation", "Speculative decoding", (c) => c.speculations.map((name) => [name, name])],
];

const OWNED = { accelerator: (x) => typeof x === "string" && x !== "", count: isNumber, n_per_node: isNumber, usd_per_h: isNumber, name: (x) => typeof x === "string" };

/** What the fields show of `constraints`, see `keptFields`. */
export const SHOWN_CONSTRAINTS = {
  pricing: (names) => isNames(names) && names.every((name) => document.querySelector(`input[name=pricing][value="${CSS.escape(name)}"]`)),
  ...Object.fromEntries(LISTS.map(([field]) => [field, isNames])),
  max_usd_per_h: isNumber, max_nodes: isNumber, max_price_age_day: isNumber,
  inventory: (items) => Array.isArray(items) && items.every((item) => Object.entries(item ?? {}).every(([name, value]) => OWNED[name]?.(value)) && ["accelerator", "count", "n_per_node", "usd_per_h"].every((name) => name in item)),
};

let accelerators = [];

/** Build the fields from the names of `/v1/choices`. */
export function buildConstraints(choices, changed) {
  accelerators = choices.accelerators;
  at("pricing").replaceChildren(...choices.pricing.map((name) =>
    h("label", {}, h("input", { type: "checkbox", name: "pricing", value: name, checked: name === "on_demand" }), ` ${nameOf(name)}`)));
  at("constraints").replaceChildren(
    ...LISTS.map(([field, label, names]) => picker(field, label, names(choices), changed)),
    h("div", { class: "pair" },
      h("label", { class: "stack" }, "At most USD per hour", h("input", { id: "max_usd_per_h", type: "number", min: "0.01", step: "any", placeholder: "any" })),
      h("label", { class: "stack" }, "Nodes a replica may span", h("input", { id: "max_nodes", type: "number", min: 1, max: 8, value: 1 })),
      h("label", { class: "stack" }, "Prices at most this many days old", h("input", { id: "max_price_age_day", type: "number", min: 0, max: 10000, placeholder: "any, younger first" }))),
  );
  buildInventory(changed);
}

/** Return a list of chosen names with a field to add one. */
export function picker(field, label, names, changed) {
  const known = new Map(names);
  const list = h("ul", { class: "chips", id: field, "data-names": "" });
  const input = h("input", { list: `${field}-names`, placeholder: "any", autocomplete: "off" });
  const add = (name) => {
    const key = [...known].find(([id, text]) => [id, text].some((one) => one.toLowerCase() === name.toLowerCase()))?.[0] ?? name;
    if (!key || chosen(field).includes(key)) return;
    const chip = h("li", { "data-name": key }, h("span", {}, known.get(key) ?? key),
      h("button", { type: "button", class: "plain", "aria-label": `Remove ${key}`, on: { click: () => { chip.remove(); changed(); } } }, "×"));
    list.append(chip);
  };
  list.addEventListener("add-name", (event) => add(event.detail));
  input.addEventListener("change", (event) => {
    event.stopPropagation();
    input.value.split(",").map((name) => name.trim()).filter(Boolean).forEach(add);
    input.value = "";
    changed();
  });
  input.addEventListener("input", (event) => event.stopPropagation());
  return h("div", { class: "picker" }, h("label", { class: "stack" }, label, input),
    h("datalist", { id: `${field}-names` }, names.map(([, text]) => h("option", { value: text }))), list);
}

/** Return the names that a list of `picker` holds. */
export const chosen = (field) => [...document.querySelectorAll(`#${field} > li`)].map((chip) => chip.dataset.name);

function buildInventory(changed) {
  const rows = h("div", { id: "inventory-rows" });
  const only = h("label", { class: "beside" }, h("input", { id: "owned-only", type: "checkbox" }), " nothing else");
  const add = h("button", { type: "button", on: { click: () => { rows.append(inventoryRow({}, changed)); } } }, "Add nodes");
  at("inventory").replaceChildren(
    h("datalist", { id: "accelerator-names" }, accelerators.map(({ name }) => h("option", { value: name }))),
    rows, h("div", { class: "row" }, add, only));
}

function inventoryRow({ accelerator = "", count = 8, n_per_node = 8, usd_per_h = 0, name = "" }, changed) {
  const field = (label, name, attributes) => h("label", { class: "stack" }, label, h("input", { "data-field": name, ...attributes }));
  const row = h("div", { class: "owned", "data-owned": name },
    field("Accelerator", "accelerator", { list: "accelerator-names", value: nameOf(accelerator) }),
    field("Count", "count", { type: "number", min: 1, value: count }),
    field("In a node", "n_per_node", { type: "number", min: 1, value: n_per_node }),
    field("USD/h of one", "usd_per_h", { type: "number", min: 0, step: "any", value: usd_per_h }),
    h("button", { type: "button", class: "plain remove", "aria-label": "Remove these nodes", on: { click: () => { row.remove(); changed(); } } }, "×"));
  return row;
}

const idOf = (name) => accelerators.find((one) => one.name === name)?.id ?? name;

/** Return the constraints as the API reads them, without those that are blank. */
export function readConstraints() {
  const constraints = { pricing: [...document.querySelectorAll("input[name=pricing]:checked")].map((box) => box.value) };
  for (const [field] of LISTS) if (chosen(field).length) constraints[field] = chosen(field);
  if (at("max_usd_per_h")?.value) constraints.max_usd_per_h = Number(at("max_usd_per_h").value);
  if (at("max_price_age_day")?.value) constraints.max_price_age_day = Number(at("max_price_age_day").value);
  if (at("max_nodes")?.value && at("max_nodes").value !== "1") constraints.max_nodes = Number(at("max_nodes").value);
  const owned = [...document.querySelectorAll(".owned")].map((row) => {
    const value = (name) => row.querySelector(`[data-field=${name}]`).value;
    const name = row.dataset.owned ? { name: row.dataset.owned } : {};
    return { ...name, accelerator: idOf(value("accelerator")), count: Number(value("count")), n_per_node: Number(value("n_per_node")), usd_per_h: Number(value("usd_per_h")) };
  }).filter((item) => item.accelerator);
  if (owned.length) constraints.inventory = owned;
  if (owned.length && at("owned-only").checked) constraints.providers = ["owned"];
  return constraints;
}

/** Show the constraints of a request. */
export function writeConstraints(constraints, changed) {
  for (const box of document.querySelectorAll("input[name=pricing]")) {
    box.checked = (constraints.pricing ?? ["on_demand"]).includes(box.value);
  }
  const isOwnedOnly = constraints.inventory && String(constraints.providers) === "owned";
  for (const [field] of LISTS) {
    at(field).replaceChildren();
    if (field === "providers" && isOwnedOnly) continue;
    (constraints[field] ?? []).forEach((name) => at(field).dispatchEvent(new CustomEvent("add-name", { detail: name })));
    if (constraints[field]?.length) at("constraints-fold").open = true;
  }
  at("max_usd_per_h").value = constraints.max_usd_per_h ?? "";
  at("max_price_age_day").value = constraints.max_price_age_day ?? "";
  at("max_nodes").value = constraints.max_nodes ?? 1;
  at("inventory-rows").replaceChildren(...(constraints.inventory ?? []).map((item) => inventoryRow(item, changed)));
  at("owned-only").checked = Boolean(isOwnedOnly);
  at("inventory-fold").open = Boolean(constraints.inventory);
}
