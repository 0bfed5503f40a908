// Entries as CSV, for a spreadsheet.

const PLAIN = [
  "rank", "provider", "region", "instance_type", "pricing", "price_usd_per_h", "price_as_of", "accelerator", "engine",
  "weight_precision", "tp", "pp", "dp", "ep", "n_replica", "n_instance",
  "cost_usd_per_h", "cost_usd_per_month", "cost_usd_per_million_input_token", "cost_usd_per_million_output_token",
  "p_limits_met", "p_runs", "load_per_replica", "in_flight_per_replica", "power_w", "memory_used_byte",
  "memory_usable_byte", "bottleneck", "outside",
];

/** Return the entries with a column for each field and each predicted metric. */
export function csvOf(entries) {
  const metrics = [...new Set(entries.flatMap((entry) => entry.predictions.map((one) => `${one.metric}:${one.statistic}`)))];
  const head = [...PLAIN, ...metrics.flatMap((name) => [name, `${name}:low`, `${name}:high`])];
  const rows = entries.map((entry) => {
    const predictions = new Map(entry.predictions.map((one) => [`${one.metric}:${one.statistic}`, one]));
    return [...PLAIN.map((name) => entry[name]), ...metrics.flatMap((name) => {
      const { value, low, high } = predictions.get(name) ?? {};
      return [value, low, high];
    })];
  });
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Quote a cell; a text that a spreadsheet would take for a formula gets an apostrophe. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
