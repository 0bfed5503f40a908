// The figures of the evaluation protocols, as `/v1/scoreboard` has them.

import { h, table } from "../shared/dom.js";
import { ask } from "../shared/api.js";
import { errorPercent, few, figurePercent } from "../shared/format.js";

const TITLES = {
  P1: "P1: the cheapest hardware that meets limits (LLM-Pilot's benchmark)",
  P2: "P2: as P1, over many limits",
  P3: "P3: a model or an accelerator held out",
  P3_clean: "P3 without doubtful rows",
  P4: "P4: every lineage of models held out, all campaigns",
  P4_methods: "P4: roofcast against other methods",
  decisions: "Decisions: cost of the choice over that of the best",
  P5: "P5: a few measurements of the asked model",
  P6: "P6: training and fine-tuning, the first campaigns",
  P6_all: "P6: training and fine-tuning, all campaigns",
  P6_judges: "P6: training, tables that no fit reads",
  P6_ordinary: "P6: jobs of ordinary trainers",
  P7: "P7: every stack held out, the first campaigns",
  P7_all: "P7: every stack held out, all campaigns",
  P8: "P8: a few runs of one's own stack",
  P9: "P9: memory of servers as they start",
  P10: "P10: probabilities of meeting limits",
  P11: "P11: an accelerator held out",
  P12: "P12: later dates and other configurations of a measured stack",
};

const FIRST = "P4_methods";

const LABELS = {
  mape: "mean error", median_ape: "median error", so: "S/O", within_25: "within 25%", within_5: "within 5%", n_row: "rows", n_owner: "owners",
  n_failed: "ran out of memory", n_ran: "ran", n_decision: "decisions", n_without_price: "without a price",
  analytic_calibrated: "estimate, calibrated", analytic_priors: "estimate, not calibrated", nearest_measured: "nearest measurement",
  xgboost_raw: "XGBoost without the estimate", raw_trees: "trees without the estimate", ttft: "TTFT", tpot: "TPOT", itl: "ITL", e2e: "end to end", output_throughput: "throughput",
  coverage_50: "in 50% interval", coverage_80: "in 80% interval", coverage_90: "in 90% interval", width_90: "width of 90% interval",
};

/** Figures that are shares of rows, and errors as shares of what was measured. */
const SHARES = new Set(["within_25", "within_5", "answered", "success", "recall"]);
const ERRORS = new Set(["mape", "median_ape", "median_ape_stated", "median_of_stacks", "overspend", "false_alarm"]);

/** Return a fold for each protocol in the order of titles; the comparison of methods is open. */
export async function scoreboardPanel() {
  const { protocols } = await ask("v1/scoreboard");
  const known = Object.keys(TITLES).filter((name) => name in protocols);
  const names = [...known, ...Object.keys(protocols).filter((name) => !(name in TITLES))];
  if (!names.length) return h("p", { class: "hint" }, "No figures were computed; `roofcast scoreboard` does so.");
  return names.map((name) => {
    const { figures, computed_on, roofcast_version } = protocols[name];
    return h("details", { open: name === FIRST }, h("summary", {}, TITLES[name] ?? name),
      h("p", { class: "hint" }, `Computed on ${computed_on} by roofcast ${roofcast_version}`), ...tables(TITLES[name] ?? name, figures));
  });
}

/**
 * Return figures of any depth as tables.
 *
 * Of the parts that lead to a figure, the one with most values, such as the method, names the rows; the others name the table.
 */
function tables(title, figures) {
  const byDepth = Object.values(Object.groupBy(records(figures), ({ path }) => path.length));
  return byDepth.flatMap((rows) => {
    const nValue = rows[0].path.map((_, i) => new Set(rows.map(({ path }) => path[i])).size);
    const of = nValue.indexOf(Math.max(...nValue));
    const groups = Object.groupBy(rows, ({ path }) => path.filter((_, i) => i !== of).map(label).join(" · "));
    return Object.entries(groups).map(([caption, some]) => h("div", { class: caption ? "board" : "board untitled" }, table(capitalised(caption || title), columns(some, of), some)));
  });
}

function columns(rows, of) {
  const names = new Set(rows.flatMap(({ values }) => Object.keys(values)));
  return {
    [heading(rows, of)]: ({ path }) => (path.length ? label(path[of]) : "all"),
    ...Object.fromEntries([...names].map((name) => [capitalised(label(name)), ({ values }) => figure(name, values[name])])),
  };
}

function heading(rows, of) {
  const parts = rows.map(({ path }) => path[of]);
  if (parts.includes("roofcast")) return "Method";
  if (parts.every((part) => /^\d+$/.test(part))) return "Own measurements";
  return parts.includes("tpot") ? "Metric" : "Of";
}

function records(figures, path = []) {
  const entries = Object.entries(figures);
  const values = Object.fromEntries(entries.filter(([, value]) => !isObject(value)));
  const deeper = entries.filter(([, value]) => isObject(value));
  const own = Object.keys(values).length ? [{ path, values }] : [];
  return [...own, ...deeper.flatMap(([name, value]) => records(value, [...path, name]))];
}

function figure(name, value) {
  if (typeof value !== "number") return text(value);
  if (ERRORS.has(name)) return errorPercent(value);
  return SHARES.has(name) || name.startsWith("coverage_") ? figurePercent(value) : text(value);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const capitalised = (text) => text[0].toUpperCase() + text.slice(1);
const label = (name) => LABELS[name] ?? name.replaceAll("_", " ");

function text(value) {
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : few(value);
  if (Array.isArray(value)) return value.map(text).join(", ");
  return value === null || value === undefined ? "" : String(value);
}
