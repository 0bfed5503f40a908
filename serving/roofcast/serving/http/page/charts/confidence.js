// The least cost by the confidence that all limits are met.

import { table } from "../shared/dom.js";
import { percent, usd } from "../shared/format.js";
import { draw, figure } from "./bokeh.js";

const HOURS_PER_MONTH = 730;

export function showConfidence(place, answer) {
  const points = answer.cost_of_confidence.filter((point) => point.cost_usd_per_h !== null);
  if (!points.length) {
    place.textContent = "No confidence can be guaranteed for these limits.";
    return;
  }
  const month = (point) => point.cost_usd_per_h * HOURS_PER_MONTH;
  draw(place, {
    name: "Cost of confidence",
    points: points.map((p) => ({ x: percent(p.confidence), y: month(p), text: `${percent(p.confidence)} confidence costs ${usd(month(p))} per month` })),
    label: `Cost of confidence: ${points.map((p) => `${percent(p.confidence)} costs ${usd(month(p))} per month`).join(", ")}`,
    asTable: table("Least cost by confidence", {
      "Confidence": (p) => percent(p.confidence), "Per month": (p) => (p.cost_usd_per_h === null ? "nothing meets the limits" : usd(month(p))),
    }, answer.cost_of_confidence),
    build: (Bokeh, colour) => {
      const names = points.map((p) => percent(p.confidence));
      const source = new Bokeh.ColumnDataSource({ data: {
        x: names, y: points.map(month), text: points.map((p) => usd(month(p))),
        colour: points.map((p) => (Math.abs(p.confidence - answer.confidence) < 1e-9 ? colour.accent : colour.quiet)),
      } });
      const top = Math.max(...points.map(month)) || 1;
      const fig = figure(Bokeh, colour, { x: "confidence", y: "USD per month", x_range: new Bokeh.FactorRange({ factors: names }), y_range: new Bokeh.Range1d({ start: 0, end: top * 1.15 }) });
      fig.yaxis.formatter = new Bokeh.NumeralTickFormatter({ format: "$0,0" });
      fig.xgrid.grid_line_color = null;
      fig.vbar({ field: "x" }, 0.6, { field: "y" }, 0, { source, fill_color: { field: "colour" }, line_color: null, fill_alpha: 0.85 });
      fig.text({ field: "x" }, { field: "y" }, { field: "text" }, { source, text_align: "center", text_baseline: "bottom", y_offset: -3, text_color: colour.ink, text_font: "system-ui", text_font_size: "12px" });
      return fig;
    },
  });
}
