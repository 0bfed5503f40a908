// Fields of a link that the form cannot show: they are named, kept and sent, until they are dropped or changed in the form.

import { at, h } from "../shared/dom.js";

const MAX_LETTER = 60;

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const valueAt = (request, path) => path.reduce((part, name) => part?.[name], request);

export const isNumber = (value) => typeof value === "number";
export const isNames = (value) => Array.isArray(value) && value.every((one) => typeof one === "string" && one.trim() !== "");

/** Whether the fields of a model can show it. */
export const isModelShown = (value) => typeof value === "string" || isObject(value) && typeof value.name === "string" && value.name !== ""
  && isObject(value.config) && Object.keys(value).length === 2;

/** Return the paths and values of a request that a form does not show; `shown` maps each field to whether it shows a value, or to its own fields. */
function unshown(request, shown, above = []) {
  return Object.entries(request).flatMap(([name, value]) => {
    const path = [...above, name];
    const field = Object.hasOwn(shown, name) ? shown[name] : () => false;
    if (typeof field !== "function") return isObject(value) ? unshown(value, field, path) : [{ path, value }];
    return field(value, request) ? [] : [{ path, value }];
  });
}

/** Return a request with another value at a path. */
function put(request, [name, ...below], value) {
  const part = isObject(request[name]) ? request[name] : {};
  return { ...request, [name]: below.length ? put(part, below, value) : value };
}

/** Return the part of a request that the form shows, whose parts are objects. */
function showable(request, shown) {
  const fields = Object.entries(shown).filter(([name]) => Object.hasOwn(request, name));
  return Object.fromEntries(fields.flatMap(([name, field]) => {
    if (typeof field === "function") return field(request[name], request) ? [[name, request[name]]] : [];
    return isObject(request[name]) ? [[name, showable(request[name], field)]] : [];
  }));
}

/** Return `read`, `write` and `names` of a form that keeps the fields which `shown()` lacks, and lists them in the element `id`. */
export function keptFields(id, { shown, read, write }) {
  let kept = [];
  let written = {};
  let changed = () => {};

  function list() {
    const chips = kept.filter(({ value }) => value !== null).map((one) => h("li", {}, h("span", {}, text(one)),
      h("button", { type: "button", class: "plain", "aria-label": `Drop ${one.path.join(".")}`, on: { click: () => drop(one) } }, "×")));
    at(id).replaceChildren(...chips.length ? [h("p", { class: "hint" }, "Asked as the link says, without a field here:"), h("ul", { class: "chips" }, chips)] : []);
  }

  function drop(one) {
    kept = kept.filter((other) => other !== one);
    list();
    changed();
  }

  return {
    write(request, listener) {
      changed = listener;
      write(showable(request, shown()), changed);
      kept = unshown(request, shown());
      written = read();
      list();
    },
    read() {
      const form = read();
      const n = kept.length;
      kept = kept.filter(({ path }) => isSame(valueAt(form, path), valueAt(written, path)));
      if (kept.length < n) list();
      return kept.reduce((request, { path, value }) => put(request, path, value), form);
    },
    names: () => kept.filter(({ value }) => value !== null).map(({ path }) => path.join(".")),
  };
}

function text({ path, value }) {
  const all = `${path.join(".")}: ${JSON.stringify(value)}`;
  return all.length > MAX_LETTER ? `${all.slice(0, MAX_LETTER)} …` : all;
}
