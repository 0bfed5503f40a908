// BokehJS, loaded from the installed package when the first chart is drawn, and charts in the colours of the page.

import { h } from "../shared/dom.js";
import { pointList } from "./point_list.js";

const SCRIPT = document.querySelector("script[nonce]");
const FILES = ["bokeh.min.js", "bokeh-api.min.js"];
const NARROW = matchMedia("(max-width: 40rem)");
const MAX_TICK = 8;
const ROUND = [[1, 2, 3, 5], [1, 2, 5], [1, 3], [1]];
const drawn = new Map();
let loading = null;

/**
 * Draw a chart into an element, described by a label and a table; again when the theme changes.
 *
 * `points` are what the keyboard reaches: places `x` and `y` in the chart, `text`, and `choose` where a point leads somewhere.
 */
export async function draw(place, { name, label, points, asTable, build }) {
  const canvas = h("div", { class: "canvas", role: "img", "aria-label": label });
  const plot = h("div", { class: "plot" }, canvas, pointList(name, points, (point) => mark(canvas, point)));
  place.replaceChildren(plot, asTable ? h("details", { class: "quiet" }, h("summary", {}, "As a table"), asTable) : "");
  await paint(canvas, build);
}

/** Show the point that the keyboard has reached in the chart of a canvas. */
function mark(canvas, point) {
  const chart = drawn.get(canvas);
  if (chart) chart.marker.data = point ? { x: [point.x], y: [point.y] } : { x: [], y: [] };
}

async function paint(canvas, build) {
  const Bokeh = await (loading ??= load());
  for (const [other, { view }] of drawn) if (!other.isConnected || other === canvas) dispose(Bokeh, other, view);
  if (!canvas.isConnected) return;
  canvas.replaceChildren();
  const colour = colours();
  const fig = build(Bokeh, colour);
  const marker = new Bokeh.ColumnDataSource({ data: { x: [], y: [] } });
  fig.scatter({ field: "x" }, { field: "y" }, { source: marker, size: 22, fill_color: null, line_color: colour.ink, line_width: 3 });
  const view = await Bokeh.Plotting.show(fig, canvas);
  drawn.set(canvas, { view, build, marker });
  canvas.dataset.drawn = "";
}

function dispose(Bokeh, canvas, view) {
  drawn.delete(canvas);
  const { document } = view.model;
  document.clear();
  const index = Bokeh.documents.indexOf(document);
  if (index >= 0) Bokeh.documents.splice(index, 1);
}

/** Draw all charts again, in the colours of another theme. */
export function redraw() {
  for (const [canvas, { build }] of [...drawn]) paint(canvas, build);
}

/** The content security policy admits inline styles with the nonce of the page only; BokehJS's get it here. */
async function load() {
  const create = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const element = create(name, options);
    if (name === "style") element.nonce = SCRIPT.nonce;
    return element;
  };
  for (const file of FILES) await run(`${SCRIPT.dataset.charts}/${file}`);
  window.Bokeh.set_log_level("error");
  return window.Bokeh;
}

function run(source) {
  return new Promise((resolve, reject) => {
    document.head.append(h("script", { src: source, on: { load: resolve, error: () => reject(new Error(`${source} does not load`)) } }));
  });
}

function colours() {
  const style = getComputedStyle(document.body);
  const names = ["ink", "quiet", "line", "panel", "accent", "good", "doubt", "bad", "c1", "c2", "c3", "c4", "c5", "c6"];
  const probe = h("span", { hidden: true });
  document.body.append(probe);
  const all = Object.fromEntries(names.map((name) => {
    probe.style.color = style.getPropertyValue(`--${name}`);
    return [name, getComputedStyle(probe).color];
  }));
  probe.remove();
  return all;
}

/** Return an empty figure in the colours of the page. */
export function figure(Bokeh, colour, { x, y, height = NARROW.matches ? 230 : 300, ...options }) {
  const fig = Bokeh.Plotting.figure({
    height, sizing_mode: "stretch_width", toolbar_location: null, tools: [], background_fill_alpha: 0,
    border_fill_alpha: 0, outline_line_color: null, min_border_right: 12, ...options,
  });
  for (const [axis, label] of [[fig.xaxis, x], [fig.yaxis, y]]) {
    Object.assign(axis, {
      axis_label: label, axis_label_text_color: colour.quiet, axis_label_text_font_style: "normal", axis_label_text_font: "system-ui",
      axis_label_text_font_size: "12px", major_label_text_color: colour.quiet, major_label_text_font: "system-ui",
      major_label_text_font_size: "12px", axis_line_color: colour.line, major_tick_line_color: colour.line, minor_tick_line_color: null,
    });
  }
  for (const grid of [fig.xgrid, fig.ygrid]) Object.assign(grid, { grid_line_color: colour.line, grid_line_alpha: 0.6 });
  return fig;
}

/**
 * Mark round numbers on the logarithmic axis "x" or "y", with their text and a grid line: as many of each power of ten as there is room for.
 *
 * Such an axis has no zero, such as sunk costs. Where fewer than two round numbers lie within the values the axis keeps Bokeh's own marks.
 */
export function markPowers(Bokeh, fig, axis, values, text) {
  const powers = (low, high) => Array.from({ length: Math.floor(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 }, (_, i) => 10 ** (Math.floor(Math.log10(low)) + i));
  markRound(Bokeh, fig, axis, values, text, (low, high) => ROUND.map((steps) => powers(low, high).flatMap((power) => steps.map((step) => step * power))));
}

/** Mark durations in hours on the logarithmic axis "x" or "y", at round numbers of minutes, hours and days. */
export function markHours(Bokeh, fig, axis, values, text) {
  const all = [1 / 60, 2 / 60, 5 / 60, 10 / 60, 20 / 60, 0.5, 1, 2, 5, 10, 24, 48, 120, 240, 480, 960, 2400, 4800, 9600];
  markRound(Bokeh, fig, axis, values, text, () => [1, 2, 3].map((every) => all.filter((_, i) => i % every === 0)));
}

/** Mark the first of several lists of round numbers of which there is room for those within the values. */
function markRound(Bokeh, fig, axis, values, text, lists) {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (!positive.length) return;
  const [low, high] = [Math.min(...positive) / 1.2, Math.max(...positive) * 1.2];
  const most = axis === "x" && NARROW.matches ? MAX_TICK / 2 : MAX_TICK;
  const ticks = lists(low, high).map((list) => list.filter((x) => x >= low && x <= high)).find((list) => list.length <= most);
  if (!(ticks?.length > 1)) return;
  const ticker = new Bokeh.FixedTicker({ ticks });
  Object.assign(fig[`${axis}axis`], { ticker, major_label_overrides: new Map(ticks.map((tick) => [tick, text(tick)])) });
  Object.assign(fig[`${axis}grid`], { ticker });
}

/** Show a legend below a figure. */
export function legendBelow(fig, colour) {
  Object.assign(fig.legend, {
    background_fill_alpha: 0, border_line_color: null, label_text_color: colour.ink, label_text_font: "system-ui",
    label_text_font_size: "12px", padding: 4, spacing: 2,
  });
}
