"""Counts of one comparison: the answers of champion and challenger to the same rows."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.catalog import Catalog
from roofcast.data.errors import UnknownNameError
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.predict.row_answers import UNCALIBRATED
from roofcast.training.drift.answer_ratios import ANSWERED, Key, bin_ratios
from roofcast.training.drift.groups import ALL
from roofcast.training.drift.prediction_scores import METRICS

OTHER: Final = "other"
"""Name of what callers bring along: their names are no groups, so the number of groups is that of the catalogue."""

BLANK: Final = "blank"

Columns = Mapping[str, ColumnArray]


def tally(questions: Columns, champion: Columns, challenger: Columns, catalog: Catalog) -> Counter[Key]:
    """Return the counts of answers that either gives, and of the ratios of those that both give.

    `champion` and `challenger`: answer columns; of the champion those without references and stack profile, if it has
    both. `catalog`: without models that callers bring along.
    """
    is_ok = [np.asarray(answers["status"] == "ok", dtype=bool) for answers in (champion, challenger)]
    answered = is_ok[1].astype(int) - is_ok[0]
    groups = _groups(questions, is_ok[0] | is_ok[1], catalog)
    counts = _count(groups, ANSWERED, answered, is_ok[0] | is_ok[1])
    for metric in METRICS:
        name = f"{metric}{UNCALIBRATED}"
        before = np.asarray(champion[name if name in champion else metric], dtype=float)
        after = np.asarray(challenger[metric], dtype=float)
        is_comparable = is_ok[0] & is_ok[1] & (before > 0) & (after > 0)
        bins = np.zeros(len(before), dtype=np.int64)
        bins[is_comparable] = bin_ratios(after[is_comparable], before[is_comparable])
        counts += _count(groups, metric, bins, is_comparable)
    return counts


def _groups(questions: Columns, is_known: npt.NDArray[np.bool_], catalog: Catalog) -> list[list[tuple[str, str]]]:
    accelerators, lineages = {}, {}
    for name in {str(cell) for cell in questions["accelerator"][is_known]}:
        accelerators[name] = catalog.accelerator(name).id
    for name in {str(cell) for cell in questions["model"][is_known]}:
        try:
            spec = catalog.model(name)
            lineages[name] = OTHER if spec.id in catalog.unlisted else spec.lineage
        except UnknownNameError:
            lineages[name] = OTHER
    engines = questions.get("engine", np.full(len(is_known), None))
    return [
        [
            (ALL, ""),
            ("accelerator", accelerators.get(str(accelerator), OTHER)),
            ("engine", _engine_name(engine)),
            ("lineage", lineages.get(str(model), OTHER)),
        ]
        for accelerator, engine, model in zip(questions["accelerator"], engines, questions["model"], strict=True)
    ]


def _engine_name(cell: object) -> str:
    name = cell.strip().lower() if isinstance(cell, str) else ""
    return name if name in ENGINES else OTHER if name else BLANK


def _count(
    groups: list[list[tuple[str, str]]], metric: str, bins: npt.NDArray[np.int64], is_counted: npt.NDArray[np.bool_]
) -> Counter[Key]:
    return Counter(
        (kind, name, metric, int(bins[i])) for i in np.flatnonzero(is_counted).tolist() for kind, name in groups[i]
    )
