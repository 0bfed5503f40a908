// Cards of runs: time, cost, memory by part, launch commands.

import { copyButton, h, showDialog } from "../shared/dom.js";
import { aged, count, few, gigabytes, nameOf, offer, percent, plural, seconds, usd } from "../shared/format.js";

const ROOM = 1.15;
const PARTS = { weights: "weights", gradients: "gradients", optimizer: "optimizer", activations: "activations", logits: "logits", buffers: "buffers", reserve: "reserve" };

const FRAMEWORKS = { "megatron-lm": "Megatron-LM", transformers: "Transformers", torchtitan: "TorchTitan" };
const SHARDINGS = { ddp: "DDP", fsdp: "FSDP", zero1: "ZeRO-1", zero2: "ZeRO-2", zero3: "ZeRO-3", none: "" };

export const runName = (run) => `${run.n_accelerator > 1 ? `${run.n_accelerator} × ` : ""}${nameOf(run.accelerator)}`;
/** Return a duration in hours with the unit that suits it, such as 3.2 days or 41.1 min. */
export function hours(value) {
  if (value >= 1) return value >= 72 ? `${few(value / 24)} days` : `${few(value)} h`;
  return value >= 1 / 60 ? `${few(value * 60)} min` : seconds(value * 3600);
}

/** Return the plan of a run, such as TorchTitan, BF16, TP2 PP4 DP2, ZeRO-1, micro-batch 1 × 16, no recomputation. */
export function planText({ plan }) {
  const degrees = { TP: plan.tp, PP: plan.pp, VP: plan.vp, CP: plan.cp, EP: plan.ep, DP: plan.dp };
  const split = Object.entries(degrees).filter(([, n]) => n > 1).map(([name, n]) => name + n).join(" ");
  const batch = `micro-batch ${few(plan.n_micro_batch_sequence)} × ${few(plan.n_gradient_accumulation)}`;
  const again = plan.recomputation === "none" ? "no recomputation" : `${plan.recomputation} recomputation`;
  const held = plan.offload === "none" ? "" : `${plan.offload} on the host`;
  return [FRAMEWORKS[plan.framework] ?? plan.framework, nameOf(plan.compute_precision), split, SHARDINGS[plan.sharding] ?? plan.sharding, batch, again, held].filter(Boolean).join(", ");
}

/** Return the card of an entry, as an item of a list. */
export function trainingCard(request, answer, entry) {
  return h("li", { class: `card${entry.rank === 1 ? " first" : ""}`, id: `run-${entry.rank}`, tabindex: "-1" },
    h("header", {}, h("h3", {}, runName(entry)), h("p", { class: "runs" }, planText(entry)),
      h("p", { class: "hint" }, `${plural(entry.n_instance, "instance")} · ${offer(entry)}`)),
    h("div", { class: "price" },
      h("strong", {}, usd(entry.cost_usd), h("span", {}, ` in ${hours(entry.hours)}`)),
      h("span", { class: "hint" }, `${usd(entry.usd_per_h)}/h, ${few(entry.energy_kwh.value)} kWh`)),
    h("div", { class: "bars" },
      rangeBar("Time", entry.hours_interval, answer.deadline_h, hours, answer.level),
      rangeBar("Cost", entry.cost_usd_interval, answer.budget_usd, usd, answer.level),
      memoryParts(entry)),
    h("ul", { class: "tags" }, tags(entry).map(([text, kind]) => h("li", { class: kind }, text))),
    h("details", { class: "quiet" }, h("summary", {}, "More figures"), facts(entry, answer)),
    h("div", { class: "row actions" },
      launchers(entry).length ? h("button", { type: "button", on: { click: () => showLaunch(entry) } }, "Launch") : null));
}

function tags(entry) {
  const list = [[`${percent(entry.p_fits)} likely to fit`, entry.p_fits >= 0.9 ? "good" : "doubt"]];
  if (entry.p_deadline_met !== null) list.push([`${percent(entry.p_deadline_met)} likely in time`, "good"]);
  if (entry.p_budget_met !== null) list.push([`${percent(entry.p_budget_met)} likely within the budget`, "good"]);
  if (entry.outside) list.push(["extrapolates: far from what was measured", "doubt"]);
  if (entry.market === "marketplace") list.push(["marketplace of third-party hosts", "doubt"]);
  if (entry.pricing === "spot") list.push(["may be interrupted", "doubt"]);
  return list;
}

function facts(entry, { level }) {
  const between = ({ value, low, high }, show) => `${show(value)} (${show(low)} to ${show(high)})`;
  const rows = [
    ["Step", between(entry.step_time_s, seconds)],
    ["Tokens per second", between(entry.throughput_token_per_s, count)],
    ["MFU", between(entry.mfu_ratio, percent)],
    ["Peak memory", between(entry.peak_memory_byte, gigabytes)],
    ["Energy", between(entry.energy_kwh, (x) => `${few(x)} kWh`)],
    ["Power of the boards", `${count(entry.power_w)} W, ${percent(entry.power_share)} of their design power`],
    ["Price of an instance", `${usd(entry.price_usd_per_h)}/h as of ${aged(entry.price_as_of)}`],
    ...entry.also_at.map((other) => [`Also at ${offer(other)}`, `${usd(other.cost_usd_per_h)}/h`]),
  ];
  return [h("p", { class: "hint" }, `With intervals of ${percent(level)}`),
    h("dl", {}, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))];
}

/** Return an interval on a scale that shows its limit. */
function rangeBar(name, { value, low, high }, limit, show, level) {
  const end = Math.max(high, limit && limit < 4 * high ? limit : 0) * ROOM || 1;
  const share = (x) => `${Math.min(100, x / end * 100)}%`;
  const isShown = limit !== null && limit <= end;
  const range = `${show(low)} to ${show(high)}`;
  const limitText = limit === null ? "" : `limit ${show(limit)}`;
  return h("div", { class: "interval", role: "img", "aria-label": `${name}: ${show(value)}, ${percent(level)} interval ${range}${limitText ? `, ${limitText}` : ""}` },
    h("span", { class: "name" }, name), h("span", { class: "value" }, show(value)),
    h("span", { class: "track", style: { "--low": share(low), "--high": share(high), "--at": share(value), "--limit": share(limit ?? 0) } },
      h("span", { class: "range" }), h("span", { class: "point" }), isShown ? h("span", { class: "limit-mark" }) : null),
    h("span", { class: "detail" }, h("span", {}, range), h("span", {}, limitText)));
}

/** Return the memory of an accelerator by part against its capacity. */
function memoryParts({ memory_byte: memory, memory_capacity_byte: capacity, peak_memory_byte: peak }) {
  const shown = Object.entries(PARTS).filter(([part]) => memory[part] / capacity >= 0.005);
  const total = Object.values(memory).reduce((sum, x) => sum + x, 0);
  const end = Math.max(capacity, total);
  let from = 0;
  const pieces = shown.map(([part]) => {
    const piece = h("span", { class: `piece ${part}`, style: { "--from": `${from / end * 100}%`, "--width": `${memory[part] / end * 100}%` } });
    from += memory[part];
    return piece;
  });
  const words = shown.map(([part, name]) => `${name} ${gigabytes(memory[part])}`);
  return h("div", { class: "interval", role: "img", "aria-label": `Memory of an accelerator: ${words.join(", ")}; of ${gigabytes(capacity)}` },
    h("span", { class: "name" }, "Memory"), h("span", { class: "value" }, `${gigabytes(peak.value)} of ${gigabytes(capacity)}`),
    h("span", { class: "track parts" }, pieces),
    h("span", { class: "legend" }, shown.map(([part, name], i) => h("span", { class: `key ${part}`, title: words[i] }, name))));
}

const launchers = (entry) => [...Object.keys(entry.launch), ...Object.keys(entry.launch_problems)];

function showLaunch(entry) {
  const names = launchers(entry);
  const place = h("div", { "aria-live": "polite" });
  const show = (name) => place.replaceChildren(...(name in entry.launch
    ? [h("pre", { tabindex: "0", "aria-label": "Launch command" }, entry.launch[name]),
      h("div", { class: "row" }, copyButton("Copy", () => entry.launch[name]))]
    : [h("p", {}, `${name} ${entry.launch_problems[name]}.`)]));
  const select = h("select", {}, names.map((name) => h("option", { value: name }, name)));
  select.addEventListener("change", () => show(select.value));
  const hint = `${planText(entry)}. Run it on each node, once the variables of its first lines are set.`;
  showDialog(`Launch on ${runName(entry)}`, h("p", { class: "hint" }, hint), h("label", { class: "beside" }, "With ", select), place);
  show(names[0]);
}
