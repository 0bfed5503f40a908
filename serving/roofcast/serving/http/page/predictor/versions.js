// Versions of the predictor, with promotion, rollback and shadow mode.

import { h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";

/** Return the filler of the panel; `reload` is called after a change. */
export function versionsPanel(reload) {
  return async () => {
    const versions = await ask("v1/predictor/versions");
    const place = h("div", { "aria-live": "assertive" });
    let isBusy = false;
    async function act(path, method, body) {
      if (isBusy) return;
      isBusy = true;
      await change(place, reload, path, method, body);
      isBusy = false;
    }
    return [
      table("The newest first, the shipped one last", {
        "Version": (v) => v.version,
        "About": (v) => (v.description ? h("details", {}, h("summary", {}, v.description.split("\n").at(-1).split(":")[0]), h("p", { class: "hint" }, v.description)) : ""),
        "SHA-256": (v) => h("code", {}, v.sha256.slice(0, 12)),
        "State": (v) => state(v, act),
      }, versions),
      h("div", { class: "row" }, h("button", { type: "button", disabled: versions.length < 2, on: { click: () => act("v1/predictor/rollback", "POST") } }, "Roll back"),
        h("span", { class: "hint" }, "Changes need a key of the scope admin.")),
      place,
    ];
  };
}

function state(v, act) {
  if (v.in_service) return h("span", { class: "hint" }, "in service");
  const button = (label, ...call) => h("button", { type: "button", on: { click: () => act(...call) } }, label);
  const promote = button("Promote", "v1/predictor", "PUT", { version: v.version });
  if (v.is_challenger) return h("div", { class: "row" }, promote, button("Withdraw", "v1/predictor/challenger", "DELETE"));
  return v.run_id ? h("div", { class: "row" }, promote, button("Shadow", "v1/predictor/challenger", "PUT", { version: v.version })) : promote;
}

const DONE = { "v1/predictor/challenger PUT": "answers beside the one in service", "v1/predictor/challenger DELETE": "no longer answers" };

async function change(place, reload, path, method, body) {
  place.replaceChildren(h("p", {}, "Loading the version …"));
  try {
    const { version } = await ask(path, { method, body });
    place.replaceChildren(h("p", { class: "success box" }, `Version ${version} ${DONE[`${path} ${method}`] ?? "is in service"}.`));
    setTimeout(reload, 1500);
  } catch (error) {
    place.replaceChildren(problemBox(error));
  }
}
