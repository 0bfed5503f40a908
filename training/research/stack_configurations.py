"""Errors on configurations that a measured stack lacks: ``python -m research.stack_configurations``.

Each of two models is fitted to half of the configurations of every stack, and predicts the other half without and
with the stack named. Metrics are compared where they were measured, so imputed errors of TPOT show in throughput and
E2E latency. Prints median absolute percentage errors and the coverage of 90 % intervals, by metric and owner; some
ten minutes.
"""

import sys
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.progress import track

from judge.protocols.campaign_rows import CampaignRows, load_campaign_rows
from judge.protocols.fold_lines import by_stack
from roofcast.training.learner.predictor import RoofcastPredictor

CONFIGURATION: Final = ("stack", "model", "accelerator", "n_accelerator", "n_input_token", "n_output_token")
"""Columns whose values a configuration has in common; one half has all of its loads."""

LEVEL: Final = 0.9

ANSWER: Final = ("low", "median", "high")

MIN_ROW: Final = 20
"""Fewest rows of an owner that a line is printed for."""


def configuration_halves(measurements: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return 0 or 1 for each row, the same for rows of one configuration: shape (n_row,)."""
    names = measurements[list(CONFIGURATION)].astype(str).agg("\0".join, axis=1)
    return np.array([zlib.crc32(name.encode()) % 2 for name in names], dtype=np.intp)


def predict_other_half(rows: CampaignRows, half: npt.NDArray[np.intp], test: int) -> pd.DataFrame:
    """Return the central rows of a half that the model of the other half predicts, one line a row and metric.

    Columns `owner`, `metric`, `measured`, and `median`, `low`, `high` of the answers that name no stack and, with the
    suffix `_on_stack`, of those that name it. Rows whose stack the model does not know are left out, and so are
    training rows of runs that were published again.
    """
    run = rows.measurements["run"]
    is_test = (half == test) & rows.is_sound
    is_train = (half != test) & rows.is_sound & ~run.isin(run[is_test]).to_numpy()
    fit, asked = rows.take(is_train), rows.take(is_test & (rows.X["workload.quantile"] == 0.5).to_numpy())
    predictor = RoofcastPredictor().fit(fit.X, fit.y, fit.groups, stacks=fit.stacks)
    asked = asked.take(predictor.knows_stacks(asked.stacks))
    named = pd.concat([_answers(about, asked.take(own)) for about, own in by_stack(predictor, asked.stacks)])
    lines = _answers(predictor, asked).join(named[list(ANSWER)].add_suffix("_on_stack")).reset_index("metric")
    return lines[lines["measured"] > 0].join(asked.owners.rename("owner"))


def _answers(predictor: RoofcastPredictor, rows: CampaignRows) -> pd.DataFrame:
    prediction = predictor.predict_distribution(rows.X)
    low, high = prediction.interval(LEVEL)
    parts = [
        pd.DataFrame({"measured": rows.y[m], "low": low[m], "median": prediction.median[m], "high": high[m]})
        for m in prediction.median
    ]
    return pd.concat(parts, keys=list(prediction.median), names=["metric", "row"]).swaplevel()


def summarise(lines: pd.DataFrame) -> pd.DataFrame:
    """Return, by metric and owner, the number of rows, and median error and coverage without and with the stack."""
    scores = lines[["metric", "owner"]].copy()
    for name, suffix in (("", ""), (" on stack", "_on_stack")):
        low, median, high = (lines[f"{part}{suffix}"] for part in ANSWER)
        scores[f"error{name}"] = (median / lines["measured"] - 1).abs()
        scores[f"coverage{name}"] = lines["measured"].between(low, high).astype(float)
    parts = scores.groupby(["metric", "owner"])
    table = parts.mean().assign(**parts[["error", "error on stack"]].median())
    table.insert(0, "rows", parts.size())
    return table[table["rows"] >= MIN_ROW]


def main() -> None:
    """Print the table."""
    rows = load_campaign_rows()
    half = configuration_halves(rows.measurements)
    halves = track((0, 1), "halves", disable=not sys.stderr.isatty())
    lines = pd.concat([predict_other_half(rows, half, test) for test in halves])
    print(summarise(lines).round(3).to_string())


if __name__ == "__main__":
    main()
