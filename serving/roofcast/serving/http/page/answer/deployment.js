// How to run an entry: a command line or a manifest to copy.

import { copyButton, download, h, problemBox, showDialog } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { replicaName, runs } from "../shared/format.js";

const KINDS = { "": "the entry's engine", kubernetes: "Kubernetes", kserve: "KServe" };
const SUFFIX = { kubernetes: "yaml", kserve: "yaml" };
const COMMANDS = ["vllm", "sglang", "trtllm"];

/** Ask for the deployment of an entry and show it. */
export async function showDeployment(request, entry) {
  const place = h("div", { "aria-live": "polite" });
  const select = h("select", {}, Object.entries(KINDS).map(([kind, name]) => h("option", { value: kind }, name)));
  select.addEventListener("change", () => load(request, entry, select.value, place));
  showDialog(`Deploy on ${replicaName(entry)}`, h("p", { class: "hint" }, runs(entry)), h("label", { class: "beside" }, "For ", select), place);
  await load(request, entry, "", place);
}

/** Fill the panel in a place of its own: a late answer to an earlier choice goes where nobody sees it. */
async function load(request, entry, kind, panel) {
  const place = h("div");
  panel.replaceChildren(place);
  const wanted = kind || entry.engine;
  if (!kind && !COMMANDS.includes(wanted)) {
    place.replaceChildren(h("p", { class: "warning box" }, `There is no command line for ${wanted}; choose a manifest.`));
    return;
  }
  place.replaceChildren(h("p", {}, "…"));
  const constraints = { ...request.constraints, accelerators: [entry.accelerator], engines: [entry.engine] };
  if (entry.provider !== "owned") constraints.providers = [entry.provider];
  try {
    const answer = await ask("v1/recommendations", { body: { ...request, constraints, deployment: wanted, n_entry: 50, n_rejection: 0 } });
    const same = answer.entries.find((one) => isSame(one, entry));
    if (same?.deployment) show(place, same.deployment, kind);
    else place.replaceChildren(h("p", { class: "warning box" }, answer.warnings.join(" ") || "This entry has no deployment."));
  } catch (error) {
    place.replaceChildren(problemBox(error));
  }
}

const KEYS = ["accelerator", "engine", "weight_precision", "tp", "pp", "dp", "ep", "instance_type"];
const isSame = (one, other) => KEYS.every((key) => one[key] === other[key]);

function show(place, text, kind) {
  const name = `roofcast.${SUFFIX[kind] ?? "sh"}`;
  place.replaceChildren(
    h("pre", { tabindex: "0", "aria-label": "Deployment" }, text),
    h("div", { class: "row" }, copyButton("Copy", () => text),
      h("button", { type: "button", on: { click: () => download(name, "text/plain", text) } }, "Save")));
}
