"""P11 and P12: how far measurements carry, to an accelerator that nobody measured and within a stack.

P11 leaves out a part number: its rows on all boards and memory sizes, and those of `VARIANTS`. P12 names the stack,
and leaves out its later dates or some of its configurations. Each row is predicted for the stack that measured it;
means and medians are judged.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.protocols.baselines import capability_forest, copy_nearest
from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import (
    COLUMNS,
    DERIVED,
    THROUGHPUT,
    Fit,
    FittedFold,
    IndexArray,
    Progress,
    fit_predictor,
    map_folds,
    method_figures,
    predict_fold,
)
from roofcast.data.measurements.schema import QUESTION_COLUMNS

PART_FOLDS: Final = (
    ("H100",), ("H200",), ("B200", "MI300X"), ("B300", "A100"), ("GB200", "MI325X"), ("GB300", "MI355X"),
)  # fmt: skip
"""Part numbers left out together: of two makers, or two generations apart, so that neither tells of the other."""

VARIANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "H100": ("GH200", "H800", "H20"), "H200": ("GH200", "H800", "H20"), "A100": ("A800", "A30"), "MI355X": ("MI350X",)
}  # fmt: skip
"""Part numbers of the same silicon that are left out with a part and not judged."""

ALIKE: Final = ("model", "engine", "weight_precision", "statistic")
"""What a row of another accelerator shares with the row that takes its values, those of an accelerator."""

ALIKE_ON_STACK: Final = ("stack", "accelerator", *ALIKE)

PART_METHODS: Final = ("analytic_calibrated", "nearest_part", "capability_forest")
STACK_METHODS: Final = ("analytic_calibrated", "nearest_of_stack")

LATER_DATES: Final = "later_dates"
CONFIGURATIONS: Final = "configurations"
SPLITS: Final = (LATER_DATES, CONFIGURATIONS)
REPEATED: Final = "later_dates_copied"
"""Lines of `LATER_DATES` whose stack has a row to copy."""

CONFIGURATION: Final = (
    *(name for name in QUESTION_COLUMNS if name not in {"engine_version", "statistic"}),
    "load", "speculation", "n_speculative_token", "prefix_cache_ratio",
)  # fmt: skip
"""What runs of one configuration of a stack share."""

PER_ACCELERATOR: Final = "throughput_per_accelerator"

LEAST_ROW: Final = 100
"""Rows of means and medians that a stack must have to be judged."""

LATER_SHARE: Final = (0.1, 0.3, 0.6)
"""Least, wanted and largest share of a stack's dated rows that are later."""

N_CONFIGURATION: Final = 10
"""Of how many configurations of a stack one is left out."""

BoolArray = npt.NDArray[np.bool_]


def predict_parts(rows: CampaignRows, fit: Fit = fit_predictor, progress: Progress | None = None) -> pd.DataFrame:
    """Return the dump of P11: as of `p4_p5_campaigns.predict_campaigns`, with `part` and `PART_METHODS`."""
    part, is_judged = part_numbers(rows.measurements["accelerator"]), _is_judged(rows)
    folds = [_fold(is_kept, part.isin(names).to_numpy() & is_judged) for names, is_kept in part_folds(rows)]
    predict = partial(predict_fold, _part_predictions, rows, fit)
    dump = map_folds(predict, [fold for fold in folds if len(fold[1])], progress, "campaigns, leave one part out")
    return dump.assign(part=part_numbers(dump["accelerator"]))


def part_folds(rows: CampaignRows) -> list[tuple[tuple[str, ...], BoolArray]]:
    """Return the judged part numbers of each fold, and the mask of rows that do not tell of them."""
    part = part_numbers(rows.measurements["accelerator"])
    return [
        (names, ~part.isin([*names, *(variant for name in names for variant in VARIANTS.get(name, ()))]).to_numpy())
        for names in PART_FOLDS
    ]


def predict_on_stacks(
    rows: CampaignRows,
    fit: Fit = fit_predictor,
    progress: Progress | None = None,
    least_row: int = LEAST_ROW,
) -> pd.DataFrame:
    """Return the dump of P12: as of `p4_p5_campaigns.predict_campaigns`, with `split` and `STACK_METHODS`."""
    is_judged, is_drawn = _is_judged(rows), draw_configurations(rows, least_row)
    is_later, is_earlier = split_dates(rows, least_row)
    folds = [_fold(is_earlier, is_later & is_judged), _fold(~is_drawn, is_drawn & is_judged)]
    predict = partial(predict_fold, _stack_predictions, rows, fit)
    dump = map_folds(predict, folds, progress, "campaigns, with the stack named")
    return dump.assign(split=dump["fold"].map(dict(enumerate(SPLITS, start=1))))


def _fold(train: BoolArray, test: BoolArray) -> tuple[IndexArray, IndexArray]:
    return np.flatnonzero(train), np.flatnonzero(test)


def part_numbers(accelerators: pd.Series) -> pd.Series:
    """Return the part number of each accelerator of the catalogue.

    Examples
    --------
    >>> part_numbers(pd.Series(["nvidia-h100-sxm-80gb", "amd-mi300x-192gb", "nvidia-gb200"])).tolist()
    ['H100', 'MI300X', 'GB200']
    """
    return accelerators.str.split("-").str[1].str.upper()


def split_dates(rows: CampaignRows, least_row: int = LEAST_ROW) -> tuple[BoolArray, BoolArray]:
    """Return masks of the later rows of stacks, and of those to learn from: rows of other stacks, and earlier ones.

    A stack is split after the month that leaves the share of later rows nearest to the wanted one of `LATER_SHARE`.
    A stack with fewer than `least_row` dated rows, or without such a month, is not split.
    """
    months = rows.measurements["date"].str.extract(r"^(\d{4}-\d{2})", expand=False).fillna("").to_numpy(dtype=str)
    is_later, is_earlier = np.zeros(len(months), dtype=bool), np.ones(len(months), dtype=bool)
    is_usable = _is_judged(rows) & (months != "")
    least, wanted, largest = LATER_SHARE
    for places in _by_stack(rows):
        dated = months[places[is_usable[places]]]
        shares = {month: float((dated > month).mean()) for month in np.unique(dated)}
        fitting = {month: abs(share - wanted) for month, share in shares.items() if least <= share <= largest}
        if len(dated) >= least_row and fitting:
            split = min(fitting, key=lambda month: fitting[month])
            is_later[places] = months[places] > split
            is_earlier[places] = (months[places] != "") & (months[places] <= split)
    return is_later, is_earlier


def draw_configurations(rows: CampaignRows, least_row: int = LEAST_ROW) -> BoolArray:
    """Return a mask of all rows, of any date and statistic, of one in `N_CONFIGURATION` configurations of each stack.

    The load is a part of the configuration: other loads of the same deployment stay.
    """
    number = rows.measurements.groupby(list(CONFIGURATION), dropna=False).ngroup().to_numpy()
    is_judged, is_out = _is_judged(rows), np.zeros(len(number), dtype=bool)
    for places in _by_stack(rows):
        if is_judged[places].sum() >= least_row:
            rng = np.random.default_rng(len(places))
            drawn = rng.permutation(np.unique(number[places]))[::N_CONFIGURATION]
            is_out[places] = np.isin(number[places], drawn)
    return is_out


def _by_stack(rows: CampaignRows) -> list[IndexArray]:
    codes, names = pd.factorize(rows.stacks)
    return [np.flatnonzero(codes == code) for code in range(len(names))]


def _is_judged(rows: CampaignRows) -> BoolArray:
    is_central = rows.measurements["statistic"].isin(["mean", "p50"])
    return np.asarray(is_central & rows.is_sound)


def _part_predictions(fold: FittedFold) -> dict[str, pd.DataFrame]:
    queries = fold.rows.X.iloc[fold.test]
    forest = capability_forest(fold.train.X, _per_accelerator(fold.train), queries, COLUMNS)
    of_queries = {"by_capability_forest": forest, "by_nearest_part": _copy_alike(fold, ALIKE)}
    return {name: _whole(table, queries) for name, table in of_queries.items()}


def _stack_predictions(fold: FittedFold) -> dict[str, pd.DataFrame]:
    return {"by_nearest_of_stack": _whole(_copy_alike(fold, ALIKE_ON_STACK), fold.rows.X.iloc[fold.test])}


def _copy_alike(fold: FittedFold, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return the values, of an accelerator, of the nearest load among training rows alike in these columns."""
    train = fold.train
    keys = [
        of.measurements.assign(stack=of.stacks)[list(columns)].astype(str).agg("|".join, axis=1)
        for of in (train, fold.rows.take(fold.test))
    ]
    return copy_nearest(train.X, _per_accelerator(train), fold.rows.X.iloc[fold.test], COLUMNS, (keys[0], keys[1]))


def _per_accelerator(rows: CampaignRows) -> pd.DataFrame:
    """Return the outcomes with throughputs of an accelerator, derived ones too."""
    derived = rows.measurements[THROUGHPUT].where(rows.measurements["load"] != "open_loop")
    return rows.y.assign(**{THROUGHPUT: rows.y[THROUGHPUT].fillna(derived) / rows.X["config.n_accelerator"]})


def _whole(predicted: pd.DataFrame, X: pd.DataFrame) -> pd.DataFrame:
    return predicted.assign(**{THROUGHPUT: predicted[THROUGHPUT] * X["config.n_accelerator"]})


def part_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return P11's scores by method, part number and metric; throughputs are those of an accelerator, derived too."""
    dump = dump.assign(metric=dump["metric"].replace(DERIVED, "output_throughput"))
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for part, lines in dump.groupby("part"):
        for method, by_metric in method_figures(lines, PART_METHODS).items():
            named = {PER_ACCELERATOR if m == "output_throughput" else m: of for m, of in by_metric.items()}
            figures.setdefault(method, {})[str(part)] = named
    return figures


def on_stack_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return P12's scores by split, method and metric, those of `REPEATED` too."""
    later = dump["split"] == LATER_DATES
    splits = {name: dump[dump["split"] == name] for name in SPLITS}
    splits[REPEATED] = dump[later & dump["by_nearest_of_stack"].notna()]
    return {name: method_figures(lines, STACK_METHODS) for name, lines in splits.items()}
