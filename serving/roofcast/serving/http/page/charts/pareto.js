// Cost against latency: the deployments that no other beats in both.

import { at, h, showDialog, table } from "../shared/dom.js";
import { few, offer, percent, plural, replicaName, runs, seconds, usd } from "../shared/format.js";
import { draw, figure, markPowers } from "./bokeh.js";

const HOURS_PER_MONTH = 730;
const KEYS = ["accelerator", "engine", "weight_precision", "tp", "pp", "dp", "instance_type", "region", "pricing", "n_instance"];

const name = (point) => `${point.n_replica > 1 ? `${point.n_replica} replicas on ` : ""}${replicaName(point)}`;

/** Draw the Pareto front of an answer; a chosen point leads to its card, or shows what it is. */
export function showPareto(place, answer) {
  const points = answer.pareto;
  const choose = (point) => {
    const entry = answer.entries.find((one) => KEYS.every((key) => one[key] === point[key]));
    if (entry) show(entry);
    else showPoint(point);
  };
  draw(place, {
    name: "Cost against latency",
    points: points.map((p) => ({
      x: p.e2e_s, y: p.cost_usd_per_h * HOURS_PER_MONTH, choose: () => choose(p),
      text: `${usd(p.cost_usd_per_h * HOURS_PER_MONTH)} per month, ${seconds(p.e2e_s)} end to end: ${name(p)}, ${runs(p)}`,
    })),
    label: `Pareto front of ${plural(points.length, "deployment")}: from ${usd(points[0].cost_usd_per_h)}/h at ${seconds(points[0].e2e_s)} to ${usd(points.at(-1).cost_usd_per_h)}/h at ${seconds(points.at(-1).e2e_s)} end to end`,
    asTable: table("Deployments on the front", {
      "End to end": (p) => seconds(p.e2e_s), "Per month": (p) => usd(p.cost_usd_per_h * HOURS_PER_MONTH),
      "Deployment": (p) => h("button", { type: "button", class: "plain", on: { click: () => choose(p) } }, name(p)),
      "Runs": runs, "Likely": (p) => percent(p.p_limits_met),
    }, points),
    build: (Bokeh, colour) => build(Bokeh, colour, answer, choose),
  });
}

function show(entry) {
  const item = at(`entry-${entry.rank}`);
  const fold = item.closest("details");
  if (fold) fold.open = true;
  item.focus();
  item.scrollIntoView({ block: "center", behavior: "smooth" });
}

function showPoint(point) {
  showDialog(name(point), h("p", {}, `${usd(point.cost_usd_per_h * HOURS_PER_MONTH)} per month, ${seconds(point.e2e_s)} end to end`),
    h("p", {}, runs(point)), h("p", { class: "hint" }, offer(point)),
    h("p", {}, `${percent(point.p_limits_met)} likely to meet all limits with ${few(point.load_per_replica)} requests in flight on each replica.`));
}

function build(Bokeh, colour, { pareto, entries }, choose) {
  const isEntry = (p) => entries.some((one) => KEYS.every((key) => one[key] === p[key]));
  const source = new Bokeh.ColumnDataSource({ data: {
    x: pareto.map((p) => p.e2e_s), y: pareto.map((p) => p.cost_usd_per_h * HOURS_PER_MONTH),
    name: pareto.map(name), runs: pareto.map(runs), offer: pareto.map(offer),
    cost: pareto.map((p) => usd(p.cost_usd_per_h * HOURS_PER_MONTH)), latency: pareto.map((p) => seconds(p.e2e_s)),
    likely: pareto.map((p) => percent(p.p_limits_met)), colour: pareto.map((p) => (isEntry(p) ? colour.accent : colour.panel)),
  } });
  const fig = figure(Bokeh, colour, { x: "median end-to-end latency", y: "cost per month", x_axis_type: "log", y_axis_type: "log" });
  fig.yaxis.formatter = new Bokeh.NumeralTickFormatter({ format: "$0,0" });
  fig.xaxis.formatter = new Bokeh.NumeralTickFormatter({ format: "0.[00]" });
  markPowers(Bokeh, fig, "x", pareto.map((p) => p.e2e_s), seconds);
  markPowers(Bokeh, fig, "y", pareto.map((p) => p.cost_usd_per_h * HOURS_PER_MONTH), usd);
  fig.step({ field: "x" }, { field: "y" }, "before", { source, color: colour.accent, line_alpha: 0.5, line_width: 2 });
  const dots = fig.scatter({ field: "x" }, { field: "y" }, { source, size: 12, fill_color: { field: "colour" }, line_color: colour.accent, line_width: 2, nonselection_fill_alpha: 1 });
  fig.add_tools(
    new Bokeh.HoverTool({ renderers: [dots], tooltips: [["", "@name"], ["per month", "@cost"], ["end to end", "@latency"], ["runs", "@runs"], ["rented", "@offer"], ["likely", "@likely"]] }),
    new Bokeh.TapTool({ renderers: [dots] }));
  source.selected.change.connect(() => {
    const [index] = source.selected.indices;
    if (index !== undefined) choose(pareto[index]);
  });
  return fig;
}
