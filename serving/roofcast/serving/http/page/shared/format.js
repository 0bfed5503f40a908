// Numbers, units and names as people read them.

export const few = (value, digits = 3) =>
  Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
export const count = (value) => Math.round(value).toLocaleString("en");
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
export const usd = (value) =>
  `$${value.toLocaleString("en", value < 1000
    ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumFractionDigits: 0 })}`;
/** Return a share in percent, rounded down: a probability promises no more than it is. */
export const percent = (share) => `${Math.floor(share * 1000 + 1e-9) / 10}%`;
/** Return a share in percent as `percent` does, with one digit after the point, as columns of figures need. */
export const figurePercent = (share) => `${(Math.floor(share * 1000 + 1e-9) / 10).toFixed(1)}%`;
/** Return an error as a share in percent, rounded up, with one digit after the point. */
export const errorPercent = (share) => `${(Math.ceil(share * 1000 - 1e-9) / 10).toFixed(1)}%`;
export const gigabytes = (byte) => `${few(byte / 1e9)} GB`;

/** Return a duration with its unit, such as 415 ms or 8.3 s. */
export function seconds(value) {
  if (value >= 1) return `${few(value)} s`;
  return value >= 1e-3 ? `${few(value * 1e3)} ms` : `${few(value * 1e6)} µs`;
}

/** Return a date and time as people of Europe write it, in their time zone. */
export const moment = (at) => new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** Return a count with an SI prefix, such as 8.03 B parameters. */
export function big(value) {
  const scales = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]];
  const [scale, letter] = scales.find(([least]) => value >= least) ?? [1, ""];
  return `${few(value / scale)}${letter}`;
}

export const METRICS = {
  ttft_s: "TTFT", tpot_s: "TPOT", itl_s: "ITL", e2e_s: "End to end", nttft_s_per_token: "TTFT per input token",
  output_throughput_token_per_s: "Throughput",
};
export const isTime = (metric) => metric in METRICS && metric !== "output_throughput_token_per_s";
export const ofMetric = (metric, value) => (isTime(metric) ? seconds(value) : `${few(value)} tokens/s`);

const names = new Map();

/** Register the names of accelerators, engines, precisions, pricing, providers and regions, from `/v1/choices`. */
export function registerNames(choices) {
  choices.accelerators.forEach((one) => names.set(one.id, one.name));
  Object.entries(choices.names).forEach(([code, name]) => names.set(code, name));
}
export const nameOf = (code) => names.get(code) ?? code;

/** Return the parallel degrees of a replica above one, such as TP4 PP2. */
export function split(replica) {
  const degrees = { TP: replica.tp, PP: replica.pp, DP: replica.dp, EP: replica.ep };
  return Object.entries(degrees).filter(([, n]) => n > 1).map(([name, n]) => name + n).join(" ");
}

export const nAccelerator = (replica) =>
  replica.tp * replica.pp * replica.dp;
export const replicaName = (r) => `${nAccelerator(r) > 1 ? `${nAccelerator(r)} × ` : ""}${nameOf(r.accelerator)}`;

/** Return how a replica runs, such as vLLM, FP8, TP2, eagle with 3 tokens. */
export function runs(replica) {
  const draft = replica.speculation ? `${replica.speculation.kind} with ${plural(replica.speculation.n_token, "token")}` : "";
  const bits = replica.weight_bit ? ` of ${few(replica.weight_bit)} bits a weight` : "";
  return [nameOf(replica.engine), nameOf(replica.weight_precision) + bits, split(replica), draft].filter(Boolean).join(", ");
}
export const offer = (o) =>
  [nameOf(o.provider), o.instance_type, nameOf(o.region), nameOf(o.pricing)].filter(Boolean).join(" · ");

/** Return a date, such as `2026-05-24`, with its age in days. */
export const aged = (day) => `${day} (${plural(Math.max(0, Math.floor((Date.now() - Date.parse(day)) / 86400000)), "day")} old)`;
