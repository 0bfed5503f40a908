"""P7 with blank columns: whether intervals hold where a question leaves blank what the measured run states.

Of each owner held out, rows that state a column are predicted once more with the column blank: with intervals wider
by `BlankDoubt`, which is fitted to the other owners, and without.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import LEVELS, IndexArray, interval_scores, is_unanswered
from roofcast.data.catalog import load_catalog
from roofcast.training.dataset.blanked_rows import BlankedRows, build_blanked_rows
from roofcast.training.dataset.stacks import stack_owners
from roofcast.training.evaluation.metrics import median_ape
from roofcast.training.learner.derived_metrics import Loads
from roofcast.training.learner.errors.blank_doubt import BlankDoubt
from roofcast.training.learner.predictor import RoofcastPredictor

COLUMN_MARK: Final = "_blank_"
"""Part of the names of the dump's columns, before the name of the column that is left blank."""

_WITHOUT_DOUBT: Final = "no_doubt"


def predict_blanks(
    predictor: RoofcastPredictor, train_rows: CampaignRows, rows: CampaignRows, test: IndexArray
) -> dict[str, pd.DataFrame]:
    """Return predictions and bounds of test rows with one column left blank: shapes (n_blanked, n_metric) by name.

    ``predicted_blank_COLUMN``, ``low_90_blank_COLUMN`` and ``high_90_blank_COLUMN``, and the bounds without doubt,
    ``low_90_no_doubt_blank_COLUMN`` and ``high_90_no_doubt_blank_COLUMN``.
    """
    doubt = BlankDoubt.fit(predictor, train_rows.X, _build_blanked(train_rows))
    tables: dict[str, pd.DataFrame] = {}
    for column, blanked in _build_blanked(rows.take(test)).items():
        narrow = predictor.predict_distribution(blanked.X)
        wide = narrow.widen(doubt.predict(Loads.of(blanked.X).is_open_loop, [column] * len(blanked.X)))
        is_blank = is_unanswered(rows, rows.X.index.get_indexer(blanked.X.index)) | narrow.estimate.is_saturated
        answers = {"predicted": narrow.median}
        for name, prediction in ((_WITHOUT_DOUBT, narrow), ("", wide)):
            bounds = zip(("low_90", "high_90"), prediction.interval(LEVELS[-1]), strict=True)
            answers |= {f"{side}_{name}" if name else side: table for side, table in bounds}
        tables |= {f"{name}{COLUMN_MARK}{column}": table.mask(is_blank, axis=0) for name, table in answers.items()}
    return tables


def _build_blanked(rows: CampaignRows) -> dict[str, BlankedRows]:
    catalog = load_catalog()
    return build_blanked_rows(rows.measurements, rows.stacks, catalog.models, catalog.accelerators)


def blank_lines(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of a dump that were predicted with a blank column."""
    predicted = [name for name in map(str, dump) if name.startswith(f"predicted{COLUMN_MARK}")]
    return dump[dump[predicted].notna().any(axis=1)]


def blank_figures(lines: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return scores by blank column and metric, over the rows that state the column.

    Errors and coverages of 90 % intervals are means over owners, an error being an owner's median; ``*_stated`` are
    of the question as it was measured, ``coverage_90_no_doubt`` is of the blank question's interval without its
    doubt. ``width_90`` and ``width_90_stated`` are medians.
    """
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name in (name for name in map(str, lines) if name.startswith(f"predicted{COLUMN_MARK}")):
        column = name.removeprefix(f"predicted{COLUMN_MARK}")
        answered = lines[lines[name].notna() & lines["predicted"].notna()]
        figures[column] = {str(m): _scores(part, column) for m, part in answered.groupby("metric", sort=False)}
    return {column: of for column, of in figures.items() if of}


def _scores(lines: pd.DataFrame, column: str) -> dict[str, float]:
    mark = f"{COLUMN_MARK}{column}"
    by_owner = [part for _, part in lines.groupby(stack_owners(lines["stack"]))]

    def coverage(bounds: str) -> float:
        return float(np.mean([interval_scores(part, bounds)["coverage_90"] for part in by_owner]))

    def error(predicted: str) -> float:
        return float(np.mean([median_ape(part["measured"], part[predicted]) for part in by_owner]))

    return {
        "n_row": float(len(lines)),
        "n_owner": float(len(by_owner)),
        "median_ape_stated": error("predicted"),
        "median_ape": error(f"predicted{mark}"),
        "coverage_90_stated": coverage("90"),
        "coverage_90_no_doubt": coverage(f"90_{_WITHOUT_DOUBT}{mark}"),
        "coverage_90": coverage(f"90{mark}"),
        "width_90_stated": interval_scores(lines, "90")["width_90"],
        "width_90": interval_scores(lines, f"90{mark}")["width_90"],
    }
