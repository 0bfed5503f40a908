// A range and a number field for one value; both say the same.

import { at, h } from "../shared/dom.js";

const STEPS = 400;

/** Turn an element with `data-name`, `data-min`, `data-max` and so on into a slider with a number field. */
export function buildSlider(element) {
  const { name, label, unit = "", value, scale = "log" } = element.dataset;
  const [min, max] = [Number(element.dataset.min), Number(element.dataset.max)];
  const toPosition = (x) => Math.round(STEPS * (scale === "log" ? Math.log(x / min) / Math.log(max / min) : (x - min) / (max - min)));
  const toValue = (p) => nice(scale === "log" ? min * (max / min) ** (p / STEPS) : min + (max - min) * (p / STEPS), scale);
  const range = h("input", { type: "range", min: 0, max: STEPS, "aria-label": label, id: `${name}-range` });
  const number = h("input", { type: "number", id: name, min, step: "any", value });
  const show = () => {
    const x = Number(number.value) || min;
    range.value = toPosition(Math.min(max, Math.max(min, x)));
    range.setAttribute("aria-valuetext", `${number.value} ${unit}`.trim());
    range.style.setProperty("--share", `${range.value / STEPS * 100}%`);
  };
  range.addEventListener("input", () => { number.value = toValue(Number(range.value)); show(); });
  number.addEventListener("input", show);
  element.replaceChildren(
    h("label", { for: name }, label),
    h("span", { class: "amount" }, number, unit ? h("span", { class: "unit" }, unit) : null),
    range,
  );
  show();
  return { name, get: () => Number(number.value), set: (x) => { number.value = x; show(); } };
}

/** Round to two digits on a logarithmic scale, to whole steps on a linear one. */
function nice(value, scale) {
  if (scale === "linear") return Math.round(value);
  return value >= 1 ? Math.round(Number(value.toPrecision(2))) : Number(value.toPrecision(2));
}

/** A field of the form that holds no usable value; the answer on the screen stays. */
export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/** Return the number of a field; throws a `FieldError` where it is blank, no number, or below what the field admits. */
export function readNumber(id) {
  const field = at(id);
  const value = Number(field.value);
  const admitsZero = Number(field.min) === 0;
  if (field.value.trim() !== "" && (value > 0 || admitsZero && value === 0)) return value;
  const name = field.labels?.[0]?.textContent ?? id;
  throw new FieldError(field, `${name}: a number ${admitsZero ? "from 0 on" : "above 0"} is needed`);
}

const exact = (value) => Number(value.toPrecision(12));
/** Set a slider of percent to a share, and return the share of one. */
export const setShare = (name, share) => setSlider(name, exact(share * 100));
export const shareOf = (name) => exact(readNumber(name) / 100);

/** Set a slider by its name; without an element of that name nothing happens. */
export function setSlider(name, value) {
  const number = at(name);
  if (!number || value === undefined || value === null) return;
  number.value = value;
  number.dispatchEvent(new Event("input", { bubbles: false }));
}
