// Models that imports registered with their config.json, and their removal.

import { h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { big } from "../shared/format.js";

const OWN = "config.json";

/** Return the list of registered models, each with a button that removes it. */
export async function registeredModelsPanel() {
  const place = h("div", { "aria-live": "polite" });
  const list = h("div");
  async function fill() {
    const models = (await ask("v1/models")).filter((one) => one.source === OWN);
    list.replaceChildren(models.length ? table("Removed once no measurement refers to them", {
      "Model": (m) => m.id, "Parameters": (m) => big(m.n_param), "Weights": (m) => m.weight_precision,
      "": (m) => h("button", { type: "button", "aria-label": `Remove ${m.id}`, on: { click: () => remove(m.id) } }, "Remove"),
    }, models) : h("p", { class: "hint" }, "None. A benchmark file that brings a config.json along registers its model."));
  }
  async function remove(name) {
    try {
      await ask(`v1/models/${encodeURIComponent(name)}`, { method: "DELETE" });
      await fill();
      place.replaceChildren(h("p", { class: "success box" }, `${name} is removed.`));
    } catch (error) {
      place.replaceChildren(problemBox(error));
    }
  }
  await fill();
  return [list, place];
}
