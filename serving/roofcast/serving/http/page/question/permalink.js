// The question in the address: `#/recommend?q={...}`, with the name of the view. Nothing is stored on the server.

const prefix = (view) => `#/${view}?q=`;

/** Return the address of a question. */
export const linkTo = (request, view = "recommend") => new URL(`${location.pathname}${prefix(view)}${encodeURIComponent(JSON.stringify(request))}`, location.href).href;

/** Put a question into the address of this page. */
export const keepInAddress = (request, view = "recommend") => history.replaceState(null, "", linkTo(request, view));

/** Return the question of the address; null if it has none that can be read. */
export function questionOfAddress(view = "recommend") {
  if (!location.hash.startsWith(prefix(view))) return null;
  try {
    const request = JSON.parse(decodeURIComponent(location.hash.slice(prefix(view).length)));
    return typeof request === "object" && request !== null ? request : null;
  } catch {
    return null;
  }
}
