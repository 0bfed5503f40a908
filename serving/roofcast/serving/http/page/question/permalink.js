// The question in the address: `#/recommend?q={...}`, with the name of the view. Nothing is stored on the server.

import { at } from "../shared/dom.js";
import { isObject } from "./kept.js";

const prefix = (view) => `#/${view}?q=`;

/** Return the address of a question. */
export const linkTo = (request, view = "recommend") => new URL(`${location.pathname}${prefix(view)}${encodeURIComponent(JSON.stringify(request))}`, location.href).href;

/** Put a question into the address of this page, unless another view is shown by now. */
export function keepInAddress(request, view = "recommend") {
  if (!at(view).hidden) history.replaceState(null, "", linkTo(request, view));
}

/** Return the question of the address; null if it has none. Throws if it has one that cannot be read. */
export function questionOfAddress(view = "recommend") {
  if (!location.hash.startsWith(prefix(view))) return null;
  try {
    const request = JSON.parse(decodeURIComponent(location.hash.slice(prefix(view).length)));
    if (isObject(request)) return request;
  } catch {
    // Told below: neither the escapes nor the JSON of a cut link say what is missing.
  }
  throw new Error("the question of this link cannot be read, it may be cut off; copy the link again, or ask with the form");
}
