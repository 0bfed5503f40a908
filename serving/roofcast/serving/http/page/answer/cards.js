// Cards of alternatives.

import { h, prose } from "../shared/dom.js";
import { aged, count, few, offer, percent, plural, replicaName, runs, usd } from "../shared/format.js";
import { intervalBar, memoryBar } from "./bars.js";
import { showDeployment } from "./deployment.js";
import { showReasons } from "./reasons.js";

export const cardId = (entry) => `entry-${entry.rank}`;

/** Return the card of an entry, as an item of a list. */
export function card(request, answer, entry, bar) {
  const limited = entry.predictions.filter((one) => one.limit !== null);
  const others = entry.predictions.filter((one) => one.limit === null);
  const title = entry.n_replica > 1 ? `${plural(entry.n_replica, "replica")} on ${replicaName(entry)}` : `1 replica on ${replicaName(entry)}`;
  const compare = h("input", { type: "checkbox", on: { change: () => bar.choose(entry, compare) } });
  return h("li", { class: `card${entry.rank === 1 ? " first" : ""}`, id: cardId(entry), tabindex: "-1" },
    h("header", {},
      h("h3", {}, title),
      h("p", { class: "runs" }, runs(entry)),
      h("p", { class: "hint" }, `${plural(entry.n_instance, "instance")} · ${offer(entry)}`)),
    h("div", { class: "price" },
      h("strong", {}, usd(entry.cost_usd_per_month), h("span", {}, " / month")),
      h("span", { class: "hint" }, `${usd(entry.cost_usd_per_h)}/h${dearer(answer, entry)}`),
      h("span", { class: "hint" }, tokenPrice(entry))),
    h("div", { class: "bars" }, limited.map((one) => intervalBar(one, answer.level)), memoryBar(entry)),
    h("ul", { class: "tags" }, tags(entry).map(([text, kind]) => h("li", { class: kind }, text))),
    h("details", { class: "quiet" }, h("summary", {}, "More figures"),
      h("div", { class: "bars" }, others.map((one) => intervalBar(one, answer.level))), facts(entry)),
    h("div", { class: "row actions" },
      h("button", { type: "button", on: { click: () => showReasons(request, answer, entry) } }, "Why this?"),
      h("button", { type: "button", on: { click: () => showDeployment(request, entry) } }, "Deploy"),
      h("label", { class: "beside" }, compare, " Compare")));
}

function dearer({ entries }, entry) {
  const least = entries[0].cost_usd_per_h;
  return entry.rank > 1 && least > 0 && entry.cost_usd_per_h > least * 1.005 ? `, ${few(entry.cost_usd_per_h / least)} times the first` : "";
}

const tokenPrice = (entry) =>
  `per million tokens ${usd(entry.cost_usd_per_million_input_token)} in, ${usd(entry.cost_usd_per_million_output_token)} out`;

const SUPPORT = {
  measured: ["measured at these lengths and this load", "good"],
  extrapolated: ["the model was not measured with the engine on the accelerator", "doubt"],
};

function tags(entry) {
  const list = [[`${percent(entry.p_limits_met)} likely to meet all limits`, "good"], [`bound by ${entry.bottleneck}`, ""]];
  if (entry.p_runs !== null && entry.p_runs < 0.95) list.push([`${percent(entry.p_runs)} likely to fit in memory`, "doubt"]);
  if (entry.outside) list.push([`extrapolates: ${entry.outside_columns.length ? entry.outside_columns.join(", ") : "outside what was measured"}`, "doubt"]);
  if (SUPPORT[entry.support]) list.push(SUPPORT[entry.support]);
  if (entry.market === "marketplace") list.push(["marketplace of third-party hosts", "doubt"]);
  if (entry.needs_quantised_copy) list.push(["needs a quantised checkpoint", "doubt"]);
  for (const text of entry.warnings ?? []) list.push([text, "doubt"]);
  if (entry.pricing === "spot") list.push(["may be interrupted", "doubt"]);
  return list;
}

const usersText = (n) => (n >= 1 ? plural(Math.floor(n), "user") : `${few(n)} users`);

function facts(entry) {
  const serves = entry.users_per_replica === null
    ? `${few(entry.request_rate_per_replica)} requests/s` : usersText(entry.users_per_replica);
  const rows = [
    ["A replica serves at most", serves],
    ["In flight on a replica", `${few(entry.load_per_replica)} of ${few(entry.in_flight_per_replica)}`],
    ["Power of the accelerators", `${count(entry.power_w)} W`],
    ["Price of an instance", `${usd(entry.price_usd_per_h)}/h as of ${aged(entry.price_as_of)}`],
  ];
  for (const other of entry.also_at ?? []) rows.push([`Also at ${offer(other)}`, `${usd(other.cost_usd_per_h)}/h`]);
  return h("dl", {}, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Return the card of a mixed fleet that is cheaper than the first entry; null if there is none. */
export function fleetCard({ fleet }) {
  if (!fleet.length) return null;
  const total = fleet.reduce((sum, part) => sum + part.cost_usd_per_month, 0) || fleet.reduce((sum, part) => sum + part.cost_usd_per_h, 0) * 730;
  return h("section", { class: "card fleet", "aria-label": "A cheaper mixture" },
    h("header", {}, h("h3", {}, "A mixture costs less")),
    h("div", { class: "price" }, h("strong", {}, usd(total), h("span", {}, " / month"))),
    h("ul", {}, fleet.map((part) => h("li", {}, `${plural(part.n_replica, "replica")} on ${replicaName(part)}, ${runs(part)} · ${offer(part)} · ${usd(part.cost_usd_per_h)}/h`,
      part.warnings.map((text) => h("div", { class: "hint" }, prose(text)))))));
}
