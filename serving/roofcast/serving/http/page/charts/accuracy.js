// Predicted against measured, on logarithmic axes, with the line of no error and those of a factor of two.

import { METRICS, errorPercent, nameOf, ofMetric } from "../shared/format.js";
import { medianError } from "../shared/predictions.js";
import { draw, figure, legendBelow, markPowers } from "./bokeh.js";

/** Draw rows with `measured_METRIC` and METRIC. */
export function showAccuracy(place, points, metric) {
  const measured = points.map((row) => row[`measured_${metric}`]);
  const predicted = points.map((row) => row[metric]);
  const text = (row) => `${row.model} on ${row.n_accelerator} × ${nameOf(row.accelerator)}: measured ${ofMetric(metric, row[`measured_${metric}`])}, predicted ${ofMetric(metric, row[metric])}`;
  draw(place, {
    name: "Predicted against measured",
    points: [...points].sort((a, b) => a[`measured_${metric}`] - b[`measured_${metric}`])
      .map((row) => ({ x: row[`measured_${metric}`], y: row[metric], text: text(row) })),
    label: `Predicted against measured ${METRICS[metric]} of ${points.length} measurements; median error ${errorPercent(medianError(points, metric))}`,
    build: (Bokeh, colour) => {
      const fig = figure(Bokeh, colour, { x: "measured", y: "predicted", height: 420, x_axis_type: "log", y_axis_type: "log" });
      markPowers(Bokeh, fig, "x", measured, (value) => ofMetric(metric, value));
      markPowers(Bokeh, fig, "y", predicted, (value) => ofMetric(metric, value));
      const ends = [Math.min(...measured, ...predicted), Math.max(...measured, ...predicted)];
      for (const factor of [0.5, 1, 2]) {
        fig.line(ends, ends.map((x) => x * factor), { color: colour.quiet, line_dash: factor === 1 ? "solid" : "dashed", line_width: factor === 1 ? 1.5 : 1 });
      }
      fig.add_layout(new Bokeh.Legend({ orientation: "horizontal", location: "left" }), "below");
      const groups = [[true, "learnt from", colour.c1], [false, "never seen", colour.c2]];
      const renderers = groups.filter(([is]) => points.some((row) => row.isLearnt === is)).map(([is, label, fill]) => {
        const own = points.filter((row) => row.isLearnt === is);
        return fig.scatter({ field: "x" }, { field: "y" }, {
          source: new Bokeh.ColumnDataSource({ data: {
            x: own.map((row) => row[`measured_${metric}`]), y: own.map((row) => row[metric]),
            measured: own.map((row) => ofMetric(metric, row[`measured_${metric}`])), predicted: own.map((row) => ofMetric(metric, row[metric])),
            model: own.map((row) => row.model), on: own.map((row) => `${row.n_accelerator} × ${nameOf(row.accelerator)}`), engine: own.map((row) => nameOf(row.engine ?? "")),
          } }),
          size: 7, fill_color: fill, fill_alpha: 0.65, line_color: null, legend_label: label,
        });
      });
      fig.add_tools(new Bokeh.HoverTool({ renderers, tooltips: [["", "@model"], ["on", "@on"], ["engine", "@engine"], ["measured", "@measured"], ["predicted", "@predicted"]] }));
      legendBelow(fig, colour);
      return fig;
    },
  });
}
