// DOM elements. Texts become text nodes, never HTML.

export const at = (id) => document.getElementById(id);

const PROPERTIES = new Set(["value", "checked", "hidden", "disabled", "open", "selected", "indeterminate"]);

/** Return an element; `on` has its listeners, `style` its custom properties, null children are left out. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  fill(element, attributes);
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

function fill(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false && !PROPERTIES.has(name)) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

/** Return a table in a region that scrolls by itself; `columns` maps headings to functions of a row. */
export function table(caption, columns, rows) {
  const names = Object.keys(columns);
  const head = h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)));
  const body = rows.map((row) =>
    h("tr", {}, names.map((name, i) => {
      const content = columns[name](row);
      return i ? h("td", { "data-label": name }, content) : h("th", { scope: "row", "data-label": name }, content);
    })),
  );
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, body)));
}

/** Show a modal dialog with a title and a button that closes it. */
export function showDialog(title, ...content) {
  const dialog = at("dialog");
  const close = h("button", { type: "button", class: "plain", "aria-label": "Close", on: { click: () => dialog.close() } }, "Close");
  dialog.replaceChildren(h("div", { class: "dialog-head" }, h("h2", { id: "dialog-title" }, title), close), ...content);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

/** Offer a text as a file. */
export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Return a button that copies a text and says so. */
export function copyButton(label, text) {
  const button = h("button", { type: "button", on: { click: copy } }, label);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copying is not allowed here";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  }
  return button;
}

/** Return a sentence of the service as people write it: with a capital letter, its code in backticks as code. */
export function prose(text) {
  const sentence = /^[a-z]+(?![\w:.-])/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
  return sentence.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

/** Return the warnings of an answer; null if there are none. */
export function warningBox(texts) {
  if (!texts.length) return null;
  if (texts.length === 1) return h("p", { class: "warning box" }, prose(texts[0]));
  return h("details", { class: "warning box", open: true }, h("summary", {}, `${texts.length} warnings`), h("ul", {}, texts.map((text) => h("li", {}, prose(text)))));
}

/** Return the alert of a failed request, with what may be meant and how to report it. */
export function problemBox(error) {
  if (error.problems?.length > 1) {
    return h("div", { class: "problem box" }, h("ul", {}, error.problems.map((text) => h("li", {}, prose(text)))), requestLine(error));
  }
  const near = error.nearMisses?.length && !error.message.includes("did you mean") ? h("p", {}, `Did you mean ${error.nearMisses.join(" or ")}?`) : null;
  const field = error.field && !error.message.includes(`${error.field}: `) ? h("strong", {}, `${error.field}: `) : null;
  const key = error.status === 401 || error.status === 403
    ? h("button", { type: "button", on: { click: () => at("access").click() } }, "Enter an API key") : null;
  return h("div", { class: "problem box" }, h("p", {}, field, field ? error.message : prose(error.message)), near, key, requestLine(error));
}

const requestLine = ({ requestId }) => (requestId ? h("p", { class: "hint" }, `Request ${requestId}`) : null);

/** Say that a change is done, then load the list that shows it; a list that cannot be read does not hide the change. */
export async function sayThenReload(place, text, reload) {
  place.replaceChildren(h("p", { class: "success box" }, text));
  try {
    await reload();
  } catch (error) {
    place.append(h("p", { class: "hint" }, "The list could not be read again:"), problemBox(error));
  }
}
