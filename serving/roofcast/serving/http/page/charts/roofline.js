// Operators of an explained row under the roofs of one accelerator.

import { table } from "../shared/dom.js";
import { few, nameOf, seconds } from "../shared/format.js";
import { draw, figure, legendBelow, markPowers } from "./bokeh.js";

const TERA = 1e12;
const N_POINT = 60;

/** Draw arithmetic intensity against achieved operations per second. */
export function showRoofline(place, { operators, accelerator }) {
  const shown = operators.filter((one) => one.flop > 0 && one.byte > 0 && one.seconds > 0);
  const points = shown.map((one) => ({ ...one, x: one.flop / one.byte, y: one.flop / one.seconds / TERA }));
  if (!points.length) {
    place.textContent = "There are no operators to show.";
    return;
  }
  const peaks = peaksOf(accelerator);
  draw(place, {
    name: "Roofline",
    points: [...points].sort((a, b) => a.x - b.x).map((p) => ({
      x: p.x, y: p.y, text: `${p.operator}, ${p.phase}: ${few(p.x)} FLOP per byte, ${few(p.y)} TFLOP/s, ${seconds(p.seconds)}, bound by ${p.bound}`,
    })),
    label: `Roofline of ${accelerator.name}: ${points.map((p) => `${p.operator} of ${p.phase} at ${few(p.x)} FLOP per byte reaches ${few(p.y)} TFLOP/s`).join("; ")}`,
    asTable: table("Operators", {
      "Operator": (p) => `${p.operator}, ${p.phase}`, "FLOP per byte": (p) => few(p.x), "TFLOP/s": (p) => few(p.y), "Time": (p) => seconds(p.seconds), "Bound by": (p) => p.bound,
    }, points),
    build: (Bokeh, colour) => build(Bokeh, colour, points, peaks, accelerator),
  });
}

/** Return the peaks of the precisions, in TFLOP/s, those that are equal together. */
function peaksOf({ peak_flop_per_s: all }) {
  const peaks = new Map();
  for (const [precision, peak] of Object.entries(all)) {
    if (["fp64", "fp32", "tf32"].includes(precision)) continue;
    const key = few(peak / TERA);
    peaks.set(key, { peak: peak / TERA, names: [...(peaks.get(key)?.names ?? []), nameOf(precision)] });
  }
  return [...peaks.values()];
}

function build(Bokeh, colour, points, peaks, { bandwidth_byte_per_s: bandwidth }) {
  const fig = figure(Bokeh, colour, { x: "arithmetic intensity, FLOP/byte", y: "achieved, TFLOP/s", height: 340, x_axis_type: "log", y_axis_type: "log" });
  const slope = bandwidth / TERA;
  markPowers(Bokeh, fig, "y", [...points.map((p) => p.y), ...peaks.map(({ peak }) => peak)], few);
  const ridge = Math.max(...peaks.map(({ peak }) => peak)) / slope;
  const [first, last] = [Math.min(...points.map((p) => p.x), 1) / 2, Math.max(...points.map((p) => p.x), ridge) * 4];
  markPowers(Bokeh, fig, "x", [first, last], few);
  const span = Array.from({ length: N_POINT }, (_, i) => first * (last / first) ** (i / (N_POINT - 1)));
  for (const { peak, names } of peaks) {
    fig.line(span, span.map((x) => Math.min(x * slope, peak)), { color: colour.quiet, line_width: 1.5 });
    fig.text([last], [peak], [`${few(peak)} (${names.join(", ")})`], { text_align: "right", text_baseline: "bottom", text_color: colour.quiet, text_font: "system-ui", text_font_size: "11px" });
  }
  fig.add_layout(new Bokeh.Legend({ orientation: "horizontal", ncols: 2, location: "left" }), "below");
  const phases = { prefill: colour.c1, decode: colour.c2, queue: colour.c3 };
  const renderers = Object.keys(phases).filter((phase) => points.some((p) => p.phase === phase)).map((phase) => {
    const own = points.filter((p) => p.phase === phase);
    const total = own.reduce((sum, p) => sum + p.seconds, 0);
    return fig.scatter({ field: "x" }, { field: "y" }, {
      source: new Bokeh.ColumnDataSource({ data: {
        x: own.map((p) => p.x), y: own.map((p) => p.y), size: own.map((p) => 9 + 22 * Math.sqrt(p.seconds / total)),
        name: own.map((p) => `${p.operator}, ${phase}`), time: own.map((p) => seconds(p.seconds)), bound: own.map((p) => p.bound),
        flop: own.map((p) => few(p.y)), intensity: own.map((p) => few(p.x)),
      } }),
      size: { field: "size" }, fill_color: phases[phase], fill_alpha: 0.75, line_color: colour.panel, legend_label: phase,
    });
  });
  fig.add_tools(new Bokeh.HoverTool({ renderers, tooltips: [["", "@name"], ["time", "@time"], ["bound by", "@bound"], ["TFLOP/s", "@flop"], ["FLOP/byte", "@intensity"]] }));
  legendBelow(fig, colour);
  return fig;
}
