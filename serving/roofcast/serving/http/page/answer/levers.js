// What would change the cost: fewer users, another precision, a looser limit.

import { h } from "../shared/dom.js";

/** Return the list of levers that an answer has; null if it has none. */
export function levers({ levers: list }) {
  return list?.length ? h("section", {}, h("h3", {}, "What would change this")) : null;
}
