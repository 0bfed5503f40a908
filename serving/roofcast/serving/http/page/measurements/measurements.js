// The view of measurements: import files, what was kept and why not, one's own stack before and after.

import { at, h, table } from "../shared/dom.js";
import { ask, hasKey } from "../shared/api.js";
import { count } from "../shared/format.js";
import { panel } from "../predictor/predictor.js";
import { stackPanel } from "./own_stack.js";
import { registeredModelsPanel } from "./registered_models.js";
import { uploadPanel } from "./upload.js";

export async function start() {
  at("measurements").replaceChildren(
    h("h2", { id: "measurements-title" }, "Measurements"),
    panel("Import benchmark files", async () => uploadPanel(load)),
    h("div", { class: "columns", id: "stored" }, ...storedPanels()),
    h("div", { id: "registered" }),
    panel("Shipped campaigns", shipped),
  );
  showRegistered();
}

/** Show what is stored, again after an import; the import itself stays. */
export async function load() {
  at("stored").replaceChildren(...storedPanels());
  showRegistered();
}

/** Show the registered models, above what a removal has to say: a list that cannot be read again does not hide it. */
function showRegistered(...news) {
  const said = news.length ? h("div", { tabindex: "-1" }, news) : null;
  at("registered").replaceChildren(panel("Registered models", registeredModelsPanel(showRegistered)), said ?? "");
  said?.focus();
}

const storedPanels = () => [panel("Kept, and learnt from", kept), panel("Your stack, before and after", stackPanel)];

async function kept() {
  const rows = await ask("v1/campaigns/report");
  if (!rows.length) return h("p", { class: "hint" }, `Nothing is imported yet${hasKey() ? "" : " by an operator; rows of an API key are listed with it"}. Own measurements calibrate a prediction as its references, and the predictor once it is retrained.`);
  return table("Imported campaigns", {
    "Campaign": (r) => r.campaign, "Stored": (r) => count(r.n_kept), "Training uses": (r) => count(r.n_learnable),
    "Not learnt, by rule": (r) => r.not_learnt.replaceAll("_", " ") || "",
  }, rows);
}

async function shipped() {
  const campaigns = (await ask("v1/campaigns")).filter((one) => one.title);
  return h("details", {}, h("summary", {}, `${campaigns.length} campaigns, ${count(campaigns.reduce((sum, one) => sum + one.n_row, 0))} measurements`),
    table("What the predictor learns from", {
      "Campaign": (c) => c.name, "Title": (c) => c.title, "Rows": (c) => count(c.n_row), "Rejected": (c) => count(c.n_rejected), "Licence": (c) => c.licence,
    }, campaigns));
}
