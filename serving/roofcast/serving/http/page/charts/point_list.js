// Points of a chart for the keyboard: Tab reaches the chart, arrows move among its points, Enter chooses one.

import { h } from "../shared/dom.js";

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
let nList = 0;

/**
 * Return a list over a chart with an option for each point; a screen reader speaks the text of the active one.
 *
 * A point has `text`, and `choose` where it leads somewhere; `mark` shows the active point in the chart, null for none.
 */
export function pointList(name, points, mark) {
  nList += 1;
  const keys = points.some((point) => point.choose) ? "arrows move among the points, Enter chooses one" : "arrows move among the points";
  const options = points.map(({ text }, i) => h("div", { role: "option", id: `point-${nList}-${i}`, "aria-selected": "false" }, text));
  let active = 0;

  function show(isActive) {
    options.forEach((option, i) => option.setAttribute("aria-selected", String(isActive && i === active)));
    list.setAttribute("aria-activedescendant", options[active].id);
    mark(isActive ? points[active] : null);
  }

  function onKey(event) {
    const step = STEPS[event.key];
    const isChoice = event.key === "Enter" || event.key === " ";
    if (step === undefined && !isChoice) return;
    event.preventDefault();
    if (isChoice) {
      points[active].choose?.();
      return;
    }
    active = Math.max(0, Math.min(points.length - 1, active + step));
    show(true);
  }

  const list = h("div", {
    class: "points", role: "listbox", tabindex: "0", "aria-label": `${name}: ${keys}`,
    on: { keydown: onKey, focus: () => show(true), blur: () => show(false) },
  }, options);
  return list;
}
