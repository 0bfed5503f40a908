// Models that imports registered with their config.json, and their removal.

import { h, problemBox, showDialog, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { big } from "../shared/format.js";

const OWN = "config.json";

/** Return the filler of the panel; `ended` is called with what a removal has to say. */
export function registeredModelsPanel(ended) {
  return async () => {
    const models = (await ask("v1/models")).filter((one) => one.source === OWN);
    if (!models.length) return h("p", { class: "hint" }, "None. A benchmark file that brings a config.json along registers its model.");
    return table("Removed once no measurement refers to them", {
      "Model": (m) => m.id, "Parameters": (m) => big(m.n_param), "Weights": (m) => m.weight_precision,
      "": (m) => h("button", { type: "button", "aria-label": `Remove ${m.id}`, on: { click: () => confirmRemoval(m.id, ended) } }, "Remove"),
    }, models);
  };
}

/** Ask whether to remove a model; the second click of a double click is no answer. */
function confirmRemoval(name, ended) {
  const place = h("div", { "aria-live": "polite" });
  const button = h("button", { type: "button", class: "primary", on: { click: ({ detail }) => { if (detail < 2) remove(); } } }, "Remove it");
  const dialog = showDialog(`Remove ${name}?`,
    h("p", {}, "Questions can no longer name it then. An import that brings its config.json along registers it again."),
    h("div", { class: "row" }, button), place);
  async function remove() {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    try {
      await ask(`v1/models/${encodeURIComponent(name)}`, { method: "DELETE" });
      if (button.isConnected) dialog.close();
      ended(h("p", { class: "success box" }, `${name} is removed.`));
    } catch (error) {
      if (dialog.open && button.isConnected) place.replaceChildren(problemBox(error));
      else ended(problemBox(error));
    } finally {
      button.removeAttribute("aria-disabled");
    }
  }
}
