// Predictions of measured rows.

import { ask } from "./api.js";

/** Return measurements of a campaign with their predictions, and outcomes as `measured_...`; references are measurements too. */
export async function predictRows(rows, references = []) {
  const body = { rows: rows.map((one) => one.question), references: references.map((one) => ({ ...one.question, ...one.measured })) };
  const answers = (await ask("v1/predictions", { body })).rows;
  return answers.map((answer, i) => {
    const measured = Object.entries(rows[i].measured).map(([name, value]) => [`measured_${name}`, value]);
    return { ...answer, ...Object.fromEntries(measured), isLearnt: rows[i].is_learnt };
  });
}

/** Return the median of |predicted / measured - 1|. */
export function medianError(rows, metric, predicted = metric) {
  const errors = rows.map((row) => Math.abs(row[predicted] / row[`measured_${metric}`] - 1)).filter(Number.isFinite).sort((a, b) => a - b);
  const middle = errors.length >> 1;
  return errors.length % 2 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}
