// The question in the address: `#/recommend?q={...}`. Nothing is stored on the server.

const PREFIX = "#/recommend?q=";

/** Return the address of a question. */
export const linkTo = (request) => new URL(`${location.pathname}${PREFIX}${encodeURIComponent(JSON.stringify(request))}`, location.href).href;

/** Put a question into the address of this page. */
export const keepInAddress = (request) => history.replaceState(null, "", linkTo(request));

/** Return the question of the address; null if it has none that can be read. */
export function questionOfAddress() {
  if (!location.hash.startsWith(PREFIX)) return null;
  try {
    const request = JSON.parse(decodeURIComponent(location.hash.slice(PREFIX.length)));
    return typeof request === "object" && request !== null ? request : null;
  } catch {
    return null;
  }
}
