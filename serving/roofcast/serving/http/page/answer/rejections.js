// Why not that: the nearest miss of each accelerator without an entry.

import { h, table } from "../shared/dom.js";
import { few, nameOf, runs } from "../shared/format.js";

const MOST = 1000;
const NARROW = matchMedia("(max-width: 40rem)");

const REASONS = {
  same_cost: "costs the same", dearer: "dearer", over_budget: "over the budget", too_few_nodes: "too few nodes",
  misses_limit: "misses a limit", no_offer: "no offer", does_not_fit: "does not fit", no_engine: "no engine runs it",
};

/** Return the folded list of what is not recommended, with a search. */
export function rejections(request, answer) {
  const rows = answer.families;
  if (!rows.length) return null;
  const place = h("div");
  const search = h("input", { type: "search", "aria-label": "Search what is not recommended", placeholder: "accelerator, engine or reason" });
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = rows.filter((row) => words.every((word) => textOf(row).includes(word)));
    place.replaceChildren(shown.length ? table("The nearest miss of each accelerator", COLUMNS, shown) : h("p", {}, "None of these."));
  };
  search.addEventListener("input", (event) => { event.stopPropagation(); show(); });
  show();
  return h("details", { class: "panel", id: "why-not", open: !NARROW.matches && !answer.entries.length && !answer.fleet.length },
    h("summary", {}, `Why not another? ${rows.length} accelerators without an entry`), search, place);
}

const COLUMNS = {
  "Accelerator": (row) => nameOf(row.accelerator),
  "Tried": (row) => runs(row),
  "Reason": (row) => REASONS[row.reason] ?? row.reason,
  "Detail": (row) => row.detail,
  "Over": (row) => (row.excess === null || row.excess <= 1 ? "" : row.excess > MOST ? `over ${few(MOST)}\u00a0×` : `${few(row.excess)}\u00a0×`),
};

const textOf = (row) => Object.values(COLUMNS).map((cell) => cell(row)).join(" ").toLowerCase();
