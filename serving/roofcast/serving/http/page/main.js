// The page: one of the views at a time, the theme, the API key.

import { at, h } from "./shared/dom.js";
import { useKey } from "./shared/api.js";
import { redraw } from "./charts/bokeh.js";
import * as recommend from "./answer/recommend.js";
import * as predictor from "./predictor/predictor.js";
import * as measurements from "./measurements/measurements.js";
import * as training from "./jobs/view.js";

/** A view has an element of its name, `start` builds it once, `load` shows it again. */
const VIEWS = {
  recommend: { title: "Recommend", ...recommend },
  predictor: { title: "Predictor", ...predictor },
  measurements: { title: "Measurements", ...measurements },
  training: { title: "Training", ...training },
};
const started = new Set();
const nameOfAddress = () => Object.keys(VIEWS).find((name) => location.hash.startsWith(`#/${name}`)) ?? "recommend";

function showView() {
  const name = nameOfAddress();
  for (const other of Object.keys(VIEWS)) at(other).hidden = other !== name;
  for (const link of at("views").children) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = name === "recommend" ? "roofcast" : `${VIEWS[name].title} · roofcast`;
  if (started.has(name)) return;
  started.add(name);
  VIEWS[name].start();
}

function bindKey() {
  const dialog = at("key-dialog");
  at("access").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("close", () => {
    useKey(at("key").value);
    at("access").textContent = at("key").value ? "API key set" : "API key";
    VIEWS[nameOfAddress()].load();
  });
}

function bindTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const show = () => { at("theme").textContent = isDark() ? "Light" : "Dark"; };
  at("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("roofcast-theme", document.documentElement.dataset.theme);
    show();
    redraw();
  });
  dark.addEventListener("change", () => { show(); redraw(); });
  show();
}

const theme = localStorage.getItem("roofcast-theme");
if (theme) document.documentElement.dataset.theme = theme;
at("views").append(...Object.entries(VIEWS).map(([name, { title }]) => h("a", { href: `#/${name}`, "data-view": name }, title)));
bindKey();
bindTheme();
addEventListener("hashchange", showView);
showView();
