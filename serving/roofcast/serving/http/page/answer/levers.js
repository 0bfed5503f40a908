// What would change the cost: another precision, fewer users, a looser limit, another offer.

import { h, prose, table } from "../shared/dom.js";
import { figurePercent, offer, plural, replicaName, runs, usd } from "../shared/format.js";

const HOURS_PER_MONTH = 730;
const NARROW = matchMedia("(max-width: 40rem)");

/** Return the levers of an answer, each with its price; null if it has none. */
export function levers({ levers: list }) {
  if (!list?.length) return null;
  return h("details", { class: "panel", id: "levers", open: !NARROW.matches }, h("summary", {}, h("strong", {}, "What would change this")),
    table("Each change by itself, and the cheapest deployment with it", {
      "Change": (l) => [prose(l.change), l.needs_quantised_copy ? h("span", { class: "hint" }, " needs a quantised checkpoint") : null,
        ...l.warnings.map((text) => h("span", { class: "hint" }, " ", prose(text)))].flat().filter(Boolean),
      "Per month": (l) => usd(l.cost_usd_per_h * HOURS_PER_MONTH),
      "Saves": (l) => (l.saving_ratio === null ? "" : figurePercent(l.saving_ratio)),
      "Deployment": (l) => `${plural(l.n_replica, "replica")} on ${replicaName(l)}, ${runs(l)}`,
      "Offer": offer,
    }, list));
}
