// Versions of the predictor, with promotion and rollback.

import { h, problemBox, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";

/** Return the filler of the panel; `reload` is called after a change. */
export function versionsPanel(reload) {
  return async () => {
    const versions = await ask("v1/predictor/versions");
    const place = h("div", { "aria-live": "assertive" });
    const act = (path, method, body) => change(place, reload, path, method, body);
    return [
      table("The newest first, the shipped one last", {
        "Version": (v) => v.version,
        "About": (v) => (v.description ? h("details", {}, h("summary", {}, v.description.split("\n").at(-1).split(":")[0]), h("p", { class: "hint" }, v.description)) : ""),
        "SHA-256": (v) => h("code", {}, v.sha256.slice(0, 12)),
        "State": (v) => (v.in_service ? h("span", { class: "hint" }, "in service") : h("button", { type: "button", on: { click: () => act("v1/predictor", "PUT", { version: v.version }) } }, "Promote")),
      }, versions),
      h("div", { class: "row" }, h("button", { type: "button", disabled: versions.length < 2, on: { click: () => act("v1/predictor/rollback", "POST") } }, "Roll back"),
        h("span", { class: "hint" }, "Both need a key of the scope admin.")),
      place,
    ];
  };
}

async function change(place, reload, path, method, body) {
  place.replaceChildren(h("p", {}, "Loading the version …"));
  try {
    const { version } = await ask(path, { method, body });
    place.replaceChildren(h("p", { class: "success box" }, `Version ${version} is in service.`));
    setTimeout(reload, 1500);
  } catch (error) {
    place.replaceChildren(problemBox(error));
  }
}
