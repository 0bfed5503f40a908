"use strict";
// Asks the service's own API. What it answers is shown as text alone, never as HTML.

const at = (id) => document.getElementById(id);
const few = (value) => Number(value.toPrecision(3)).toLocaleString("en");

const COLUMNS = {
  "USD/h": (e) => few(e.cost_usd_per_h),
  "USD/M output": (e) => few(e.cost_usd_per_million_output_token),
  "rent": (e) => `${e.n_instance} × ${e.provider} ${e.instance_type} ${e.region} ${e.pricing}`,
  "replicas": (e) => `${e.n_replica} × ${e.accelerator}, ${split(e)}`,
  "runs": (e) => `${e.engine} ${e.weight_precision}`,
  "in flight, of at most": (e) => `${few(e.load_per_replica)} of ${few(e.users_per_replica)}`,
  "predicted, with interval": (e) => e.predictions.map(metric).join("\n"),
  "limits met": (e) => few(e.p_limits_met),
  "bottleneck": (e) => e.bottleneck + (e.outside ? "; outside what was measured" : ""),
};
const { "USD/h": USD_PER_H, rent, replicas, runs } = COLUMNS;
const FLEET = {
  "USD/h": USD_PER_H, rent, replicas, runs, "in flight on each, at most": (f) => few(f.users_per_replica),
};
const FAMILIES = { "accelerator": (r) => r.accelerator, "reason": (r) => r.reason, "detail": (r) => r.detail };

function split(entry) {
  const degrees = { tp: entry.tensor_parallel, pp: entry.pipeline_parallel, dp: entry.data_parallel, ep: entry.expert_parallel };
  return Object.entries(degrees).filter(([name, n]) => n > 1 || name === "tp").map((pair) => pair.join("")).join(" ");
}

function metric(told) {
  return `${told.metric} ${told.statistic}: ${few(told.value)} (${few(told.low)} to ${few(told.high)})`;
}

function fill(table, columns, rows) {
  const line = (cells, kind) => {
    const row = document.createElement("tr");
    for (const text of cells) row.appendChild(document.createElement(kind)).innerText = text;
    return row;
  };
  const body = rows.map((row) => line(Object.values(columns).map((cell) => cell(row)), "td"));
  table.replaceChildren(line(Object.keys(columns), "th"), ...body);
}

async function ask(path, body) {
  const headers = at("key").value ? { authorization: `Bearer ${at("key").value}` } : {};
  if (body) headers["content-type"] = "application/json";
  const response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail || response.statusText);
  return answer;
}

async function question() {
  const number = (id) => Number(at(id).value);
  const file = at("config").files[0];
  return {
    model: file ? { name: file.name, config: JSON.parse(await file.text()) } : at("model").value,
    workload: {
      n_input_token: number("n_input_token"), n_output_token: number("n_output_token"), [at("kind").value]: number("load"),
    },
    limits: at("limits").value.split("\n").map((limit) => limit.trim()).filter(Boolean),
    confidence: number("confidence"),
  };
}

function tell(text, isProblem = false) {
  at("status").innerText = text;
  at("status").classList.toggle("problem", isProblem);
}

async function recommend(event) {
  event.preventDefault();
  tell("…");
  at("entries").hidden = at("mixed").hidden = at("rejected").hidden = true;
  try {
    const answer = await ask("v1/recommendations", await question());
    fill(at("entries"), COLUMNS, answer.entries);
    fill(at("families"), FAMILIES, answer.families);
    fill(at("fleet"), FLEET, answer.fleet);
    at("entries").hidden = !answer.entries.length;
    at("mixed").hidden = !answer.fleet.length;
    at("rejected").hidden = !answer.families.length;
    const some = answer.entries.length ? "the cheapest first" : "nothing of one kind meets the limits";
    const total = answer.fleet.reduce((sum, f) => sum + f.cost_usd_per_h, 0);
    const found = answer.fleet.length ? `${some}; a mixture costs ${few(total)} USD/h` : some;
    tell([`${answer.model}: ${answer.n_candidate} candidates, ${found}.`, ...answer.warnings].join("\n"));
  } catch (error) {
    tell(error.message, true);
  }
}

async function begin() {
  try {
    const models = await ask("v1/models");
    at("models").replaceChildren(...models.map((model) => new Option(model.id)));
    at("predictor").innerText = `Predictor version ${(await ask("v1/predictor")).version}.`;
    if (at("status").classList.contains("problem")) tell("");  // such as that a key was missing
  } catch (error) {
    tell(error.message, true);
  }
}

at("question").addEventListener("submit", recommend);
at("key").addEventListener("change", begin);
begin();
