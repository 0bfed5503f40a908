"use strict";
// Client of the HTTP API. Response fields are shown as text, never as HTML.

const at = (id) => document.getElementById(id);
const few = (value) => Number(value.toPrecision(3)).toLocaleString("en");
const usd = (value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SHOWN = {
  ttft_s: "TTFT", tpot_s: "TPOT", itl_s: "ITL", e2e_s: "end to end", nttft_s_per_token: "TTFT per input token",
  output_throughput_token_per_s: "throughput",
};

const COLUMNS = {
  "USD/h": (e) => usd(e.cost_usd_per_h),
  "USD/M tokens, input and output": (e) =>
    `${few(e.cost_usd_per_million_input_token)} and ${few(e.cost_usd_per_million_output_token)}`,
  "rent": (e) => `${e.n_instance} × ${e.provider} ${e.instance_type} ${e.region} ${e.pricing}`,
  "replicas": (e) => `${e.n_replica} × ${e.accelerator}, ${split(e)}`,
  "runs": (e) => `${e.engine} ${e.weight_precision}`,
  "each serves at most": (e) =>
    e.users_per_replica === null ? `${few(e.request_rate_per_replica)} requests/s` : `${few(e.users_per_replica)} users`,
  "in flight, of at most": (e) => `${few(e.load_per_replica)} of ${few(e.in_flight_per_replica)}`,
  "predicted, with interval": (e) => e.predictions.map(metric).join("\n"),
  "limits met with probability": (e) => (Math.floor(e.p_limits_met * 1000) / 1000).toString(),
  "bottleneck": (e) => e.bottleneck + (e.outside ? "; outside what was measured" : ""),
};
const OF_ALL = ["USD/M tokens, input and output", "each serves at most"];
const FLEET = Object.fromEntries(Object.entries(COLUMNS).filter(([name]) => !OF_ALL.includes(name)));
const FAMILIES = { "accelerator": (r) => r.accelerator, "reason": (r) => r.reason, "detail": (r) => r.detail };

function split(entry) {
  const degrees = { tp: entry.tensor_parallel, pp: entry.pipeline_parallel, dp: entry.data_parallel, ep: entry.expert_parallel };
  return Object.entries(degrees).filter(([name, n]) => n > 1 || name === "tp").map((pair) => pair.join("")).join(" ");
}

function metric(prediction) {
  const isTime = prediction.metric.includes("_s") && !prediction.metric.endsWith("_per_s");
  const [scale, unit] = !isTime ? [1, "tokens/s"] : prediction.high < 10 ? [1000, "ms"] : [1, "s"];
  const [value, low, high] = [prediction.value, prediction.low, prediction.high].map((number) => few(number * scale));
  return `${SHOWN[prediction.metric] ?? prediction.metric} ${prediction.statistic}: ${value} ${unit} (${low} to ${high})`;
}

function fill(table, columns, rows) {
  const names = Object.keys(columns);
  const line = (cells, kind) => {
    const row = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = row.appendChild(document.createElement(kind));
      cell.textContent = text;
      cell.dataset.label = names[i];  // heading of the cell on narrow screens
    });
    return row;
  };
  const body = rows.map((row) => line(Object.values(columns).map((cell) => cell(row)), "td"));
  table.replaceChildren(line(names, "th"), ...body);
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
  const workload = { [at("kind").value]: number("load") };
  if (at("preset").value) workload.preset = at("preset").value;
  if (at("n_input_token").value) workload.n_input_token = number("n_input_token");
  if (at("n_output_token").value) workload.n_output_token = number("n_output_token");
  return {
    model: file ? { name: file.name, config: JSON.parse(await file.text()) } : at("model").value,
    workload,
    limits: at("limits").value.split("\n").map((limit) => limit.trim()).filter(Boolean),
    confidence: number("confidence"),
    constraints: {
      providers: at("providers").value.split(",").map((name) => name.trim()).filter(Boolean),
      pricing: at("spot").checked ? ["on_demand", "spot"] : ["on_demand"],
    },
  };
}

function choosePreset() {
  for (const length of [at("n_input_token"), at("n_output_token")]) {
    length.required = !at("preset").value;
    if (at("preset").value) length.value = "";  // a typed length overrides the preset
    length.placeholder = at("preset").value && "measured";
  }
}

function showStatus(text, isProblem = false) {
  at("status").innerText = text;
  at("status").classList.toggle("problem", isProblem);
}

async function recommend(event) {
  event.preventDefault();
  showStatus("…");
  at("entries").hidden = at("mixed").hidden = at("rejected").hidden = true;
  try {
    const answer = await ask("v1/recommendations", await question());
    fill(at("entries"), COLUMNS, answer.entries);
    fill(at("families"), FAMILIES, answer.families);
    fill(at("fleet"), FLEET, answer.fleet);
    at("entries").hidden = !answer.entries.length;
    at("mixed").hidden = !answer.fleet.length;
    at("rejected").hidden = !answer.families.length;
    const order = answer.entries.length ? "the cheapest first" : "nothing of one kind meets the limits";
    const total = answer.fleet.reduce((sum, f) => sum + f.cost_usd_per_h, 0);
    const summary = answer.fleet.length ? `${order}; a mixture costs ${few(total)} USD/h` : order;
    showStatus([`${answer.model}: ${answer.n_candidate.toLocaleString("en")} candidates, ${summary}.`, ...answer.warnings].join("\n"));
  } catch (error) {
    showStatus(error.message, true);
  }
}

async function begin() {
  try {
    const models = await ask("v1/models");
    at("models").replaceChildren(...models.map((model) => new Option(model.id)));
    at("predictor").innerText = `Predictor version ${(await ask("v1/predictor")).version}.`;
    if (at("status").classList.contains("problem")) showStatus("");  // for example, a missing key
  } catch (error) {
    showStatus(error.message, true);
  }
}

at("question").addEventListener("submit", recommend);
at("preset").addEventListener("change", choosePreset);
at("key").addEventListener("change", begin);
begin();
