// The figures of the evaluation protocols, as `/v1/scoreboard` has them.

import { h, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { few } from "../shared/format.js";

const TITLES = {
  P1: "P1: the cheapest hardware that meets limits (LLM-Pilot's benchmark)",
  P2: "P2: as P1, over many limits",
  P3: "P3: a model or an accelerator held out",
  P3_clean: "P3 without doubtful rows",
  P4: "P4: every lineage held out, all campaigns",
  P4_methods: "P4: roofcast against other methods",
  decisions: "Decisions: cost of the choice over that of the best",
  P5: "P5: a few measurements of one's own",
  P7: "P7: every stack held out",
  P8: "P8: stacks seen before",
};

/** Return a fold for each protocol, the first open. */
export async function scoreboardPanel() {
  const { protocols } = await ask("v1/scoreboard");
  const names = Object.keys(protocols);
  if (!names.length) return h("p", { class: "hint" }, "No figures were computed; `roofcast scoreboard` does so.");
  return names.map((name, i) => {
    const { figures, computed_on, roofcast_version } = protocols[name];
    return h("details", { open: i === 0 }, h("summary", {}, TITLES[name] ?? name),
      h("p", { class: "hint" }, `Computed on ${computed_on} by roofcast ${roofcast_version}`), tables(figures));
  });
}

/** Return figures of any depth as tables: the deepest two levels are rows and columns. */
function tables(figures, title = "") {
  if (!isObject(figures)) return h("p", {}, text(figures));
  const entries = Object.entries(figures);
  const rows = entries.filter(([, value]) => isObject(value) && !Object.values(value).some(isObject));
  const plain = entries.filter(([, value]) => !isObject(value));
  const deeper = entries.filter(([, value]) => isObject(value) && Object.values(value).some(isObject));
  const parts = [];
  if (plain.length) parts.push(table(title || "Figures", { "Figure": ([name]) => label(name), "Value": ([, value]) => text(value) }, plain));
  if (rows.length) {
    const names = [...new Set(rows.flatMap(([, value]) => Object.keys(value)))];
    const columns = { "Of": ([name]) => label(name) };
    for (const name of names) columns[label(name)] = ([, value]) => text(value[name]);
    parts.push(table(title || "Figures", columns, rows));
  }
  for (const [name, value] of deeper) parts.push(tables(value, [title, label(name)].filter(Boolean).join(", ")));
  return h("div", {}, parts);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const label = (name) => name.replaceAll("_", " ");

function text(value) {
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : few(value);
  if (Array.isArray(value)) return value.map(text).join(", ");
  return value === null || value === undefined ? "" : String(value);
}
