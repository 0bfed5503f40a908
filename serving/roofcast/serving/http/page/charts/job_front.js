// Cost against time of training: the runs that no other beats in both.

import { at, h, showDialog, table } from "../shared/dom.js";
import { offer, percent, plural, usd } from "../shared/format.js";
import { hours, planText, runName } from "../jobs/cards.js";
import { draw, figure, markHours, markPowers } from "./bokeh.js";

const KEYS = ["accelerator", "n_accelerator", "provider", "instance_type", "region", "pricing", "cost_usd"];
const isSame = (one, other) => KEYS.every((key) => one[key] === other[key]);

/** Draw the Pareto front of an answer; a chosen point leads to its card, or shows what it is. */
export function showTrainingFront(place, answer) {
  const points = answer.pareto;
  const choose = (point) => {
    const entry = answer.entries.find((one) => isSame(one, point));
    if (entry) show(entry);
    else showPoint(point);
  };
  draw(place, {
    name: "Cost against time",
    points: points.map((p) => ({ x: p.hours, y: p.cost_usd, choose: () => choose(p), text: `${usd(p.cost_usd)} in ${hours(p.hours)}: ${runName(p)}, ${planText(p)}` })),
    label: `Pareto front of ${plural(points.length, "run")}: from ${usd(points[0].cost_usd)} in ${hours(points[0].hours)} to ${usd(points.at(-1).cost_usd)} in ${hours(points.at(-1).hours)}`,
    asTable: table("Runs on the front", {
      "Time": (p) => hours(p.hours), "Cost": (p) => usd(p.cost_usd),
      "Run": (p) => h("button", { type: "button", class: "plain", on: { click: () => choose(p) } }, runName(p)),
      "Plan": planText, "Likely": (p) => percent(p.p_limits_met),
    }, points),
    build: (Bokeh, colour) => build(Bokeh, colour, answer, choose),
  });
}

function show(entry) {
  const item = at(`run-${entry.rank}`);
  const fold = item.closest("details");
  if (fold) fold.open = true;
  item.focus();
  item.scrollIntoView({ block: "center", behavior: "smooth" });
}

function showPoint(point) {
  showDialog(runName(point), h("p", {}, `${usd(point.cost_usd)} in ${hours(point.hours)}, ${usd(point.usd_per_h)}/h`),
    h("p", {}, planText(point)), h("p", { class: "hint" }, `${plural(point.n_instance, "instance")} · ${offer(point)}`),
    h("p", {}, `${percent(point.p_limits_met)} likely to fit and to meet the limits.`));
}

function build(Bokeh, colour, { pareto, entries }, choose) {
  const source = new Bokeh.ColumnDataSource({ data: {
    x: pareto.map((p) => p.hours), y: pareto.map((p) => p.cost_usd), name: pareto.map(runName), plan: pareto.map(planText),
    offer: pareto.map(offer), cost: pareto.map((p) => usd(p.cost_usd)), time: pareto.map((p) => hours(p.hours)),
    likely: pareto.map((p) => percent(p.p_limits_met)),
    colour: pareto.map((p) => (entries.some((one) => isSame(one, p)) ? colour.accent : colour.panel)),
  } });
  const fig = figure(Bokeh, colour, { x: "time", y: "cost", x_axis_type: "log", y_axis_type: "log" });
  fig.yaxis.formatter = new Bokeh.NumeralTickFormatter({ format: "$0,0.[00]" });
  fig.xaxis.formatter = new Bokeh.NumeralTickFormatter({ format: "0,0.[00]" });
  markHours(Bokeh, fig, "x", pareto.map((p) => p.hours), hours);
  markPowers(Bokeh, fig, "y", pareto.map((p) => p.cost_usd), usd);
  fig.step({ field: "x" }, { field: "y" }, "before", { source, color: colour.accent, line_alpha: 0.5, line_width: 2 });
  const dots = fig.scatter({ field: "x" }, { field: "y" }, { source, size: 12, fill_color: { field: "colour" }, line_color: colour.accent, line_width: 2, nonselection_fill_alpha: 1 });
  fig.add_tools(
    new Bokeh.HoverTool({ renderers: [dots], tooltips: [["", "@name"], ["cost", "@cost"], ["time", "@time"], ["plan", "@plan"], ["rented", "@offer"], ["likely", "@likely"]] }),
    new Bokeh.TapTool({ renderers: [dots] }));
  source.selected.change.connect(() => {
    const [index] = source.selected.indices;
    if (index !== undefined) choose(pareto[index]);
  });
  return fig;
}
