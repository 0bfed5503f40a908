// Shares of TTFT and TPOT by operator.

import { table } from "../shared/dom.js";
import { percent, seconds } from "../shared/format.js";
import { draw, figure, legendBelow } from "./bokeh.js";

const PHASES = { TTFT: ["prefill", "queue"], TPOT: ["decode"] };
const LEAST = 0.002;

/** Operators that have a colour of their own, the same in each chart, in the order of the palette. */
const OPERATORS = ["projections and MLP", "attention", "element-wise", "prefills of others", "launches and gaps", "steps under way", "experts", "head", "messages"];

/** Draw where the time of an explained row goes. */
export function showTimes(place, { operators }) {
  const parts = Object.entries(PHASES).flatMap(([metric, phases]) => {
    const of = operators.filter((one) => phases.includes(one.phase));
    const total = of.reduce((sum, one) => sum + one.seconds, 0);
    return of.map((one) => ({ ...one, metric, share: one.seconds / total })).filter((one) => one.share >= LEAST);
  });
  const names = [...new Set([...OPERATORS, ...parts.map((one) => one.operator)])].filter((name) => parts.some((one) => one.operator === name));
  draw(place, {
    name: "Shares of the time",
    points: parts.map((p) => ({ x: startOf(parts, p) + p.share / 2, y: p.metric, text: `${p.metric}, ${p.operator}: ${seconds(p.seconds)}, ${percent(p.share)}, bound by ${p.bound}` })),
    label: `Largest parts: ${["TTFT", "TPOT"].map((metric) => {
      const [largest] = parts.filter((one) => one.metric === metric).sort((a, b) => b.share - a.share);
      return largest ? `${metric}: ${largest.operator} ${percent(largest.share)}` : metric;
    }).join("; ")}`,
    asTable: table("Estimated time by operator", {
      "Operator": (p) => p.operator, "Of": (p) => p.metric, "Time": (p) => seconds(p.seconds), "Share": (p) => percent(p.share), "Bound by": (p) => p.bound,
    }, parts),
    build: (Bokeh, colour) => {
      const palette = [colour.c1, colour.c2, colour.c3, colour.c4, colour.c5, colour.c6, colour.good, colour.doubt, colour.ink];
      const fig = figure(Bokeh, colour, { x: "share of the time", y: "", height: 170 + 18 * Math.ceil(names.length / 2), x_range: new Bokeh.Range1d({ start: 0, end: 1 }), y_range: new Bokeh.FactorRange({ factors: ["TPOT", "TTFT"] }) });
      fig.yaxis.axis_label = null;
      fig.xaxis.formatter = new Bokeh.NumeralTickFormatter({ format: "0%" });
      fig.ygrid.grid_line_color = null;
      fig.add_layout(new Bokeh.Legend({ orientation: "horizontal", ncols: 2, location: "left" }), "below");
      const renderers = names.map((name) => fig.hbar({ field: "y" }, 0.62, { field: "right" }, { field: "left" }, {
        source: sourceOf(Bokeh, parts, name), fill_color: palette[colourOf(name, names)], line_color: null, legend_label: name,
      }));
      fig.add_tools(new Bokeh.HoverTool({ renderers, tooltips: [["", "@name"], ["time", "@time"], ["share", "@share"], ["bound by", "@bound"]] }));
      legendBelow(fig, colour);
      return fig;
    },
  });
}

/** Return the place of an operator's colour; one without takes a colour that no other of the chart has. */
function colourOf(name, names) {
  const free = OPERATORS.flatMap((one, i) => names.includes(one) ? [] : [i]);
  const others = names.filter((one) => !OPERATORS.includes(one));
  return OPERATORS.includes(name) ? OPERATORS.indexOf(name) : free[others.indexOf(name) % free.length] ?? 0;
}

/** Return the shares of the parts before one, in the bar of its metric. */
const startOf = (parts, one) =>
  parts.slice(0, parts.indexOf(one)).filter((other) => other.metric === one.metric).reduce((sum, other) => sum + other.share, 0);

function sourceOf(Bokeh, parts, name) {
  const own = parts.filter((one) => one.operator === name);
  const left = own.map((one) => startOf(parts, one));
  return new Bokeh.ColumnDataSource({ data: {
    y: own.map((one) => one.metric), left, right: own.map((one, i) => left[i] + one.share), name: own.map(() => name),
    time: own.map((one) => seconds(one.seconds)), share: own.map((one) => percent(one.share)), bound: own.map((one) => one.bound),
  } });
}
