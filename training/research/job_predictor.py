"""Errors of the predictor of training jobs by part: ``python -m research.job_predictor P6.csv``.

The file is P6's dump (``roofcast scoreboard --protocol P6 --dump DIR``); ``--all`` adds the later campaigns.
"""

import argparse
from pathlib import Path

import pandas as pd

from judge.protocols.jobs.p6_jobs import of_first_job_campaigns
from roofcast.training.evaluation.metrics import error_summary

PARTS = ("campaign", "method", "is_mixture", "accelerator")
"""Columns of the dump by which errors are printed."""


def summarize(lines: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return errors, and coverage and width of 90 % intervals, of each part of a split and quantity."""
    table: list[dict[str, object]] = []
    for (split, quantity, part), of in lines.groupby(["split", "quantity", by]):
        inside = of["measured"].between(of["low_roofcast"], of["high_roofcast"])
        scores = error_summary(of["measured"], of["by_roofcast"])
        table.append(
            {"split": split, "quantity": quantity, by: part, "n": len(of)}
            | {name: round(scores[name], 3) for name in ("mape", "median_ape")}
            | {"coverage": round(float(inside.mean()), 3)}
            | {"width": round(float((of["high_roofcast"] / of["low_roofcast"]).median()), 2)}
        )
    return pd.DataFrame(table)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--all", action="store_true", help="all campaigns instead of the first")
    options = parser.parse_args()
    lines = pd.read_csv(options.dump)
    lines = lines[lines["quantity"].isin(["throughput", "memory"])]
    lines = lines if options.all else of_first_job_campaigns(lines)
    for by in PARTS:
        print(summarize(lines, by).to_string(index=False), end="\n\n")


if __name__ == "__main__":
    main()
