"""Paired comparison of two predictors, from scores that are made by hand."""

import numpy as np
import pandas as pd
import pytest

from roofcast.training.drift.paired_errors import compare_errors
from tests.training.drift.test_drift_report import scores


def rival(champion: pd.DataFrame, *errors: float) -> pd.DataFrame:
    """Return scores of another predictor on the same measurements."""
    error = np.array(errors)
    return champion.assign(predicted=champion["measured"] / np.exp(error), log_error=error)


def test_a_challenger_that_is_nearer_on_every_configuration_is_better() -> None:
    champion = scores(*np.linspace(0.5, 0.6, 12))
    challenger = rival(champion, *np.linspace(0.1, 0.2, 12))
    (every, *_) = compare_errors(champion, challenger)
    assert (every.kind, every.n_row, every.n_configuration, every.n_nearer) == ("all", 12, 12, 12)
    assert every.verdict == "better"
    assert every.challenger_median_ape < every.champion_median_ape
    assert every.challenger_bias == pytest.approx(np.exp(0.15))
    (reverse, *_) = compare_errors(challenger, champion)
    assert (reverse.verdict, reverse.n_nearer) == ("worse", 0)


def test_equal_errors_and_few_configurations_are_no_difference() -> None:
    same = scores(*np.linspace(-1, 1, 12))
    (every, *_) = compare_errors(same, same)
    assert (every.p_value, every.verdict, every.n_nearer) == (1.0, "no difference found", 0)
    (few, *_) = compare_errors(scores(1.0, 1.0, 1.0), scores(0.1, 0.1, 0.1))
    assert few.verdict == "no difference found"


def test_rows_of_one_configuration_are_one_observation() -> None:
    (every, *_) = compare_errors(scores(*[1.0] * 30, configuration=0), scores(*[0.1] * 30, configuration=0))
    assert (every.n_row, every.n_configuration, every.verdict) == (30, 1, "no difference found")


def test_rows_that_only_one_of_them_has_are_left_out() -> None:
    champion, challenger = scores(0.5, 0.5, 0.5), scores(0.1, 0.1)
    (every, *_) = compare_errors(champion, challenger)
    assert every.n_row == 2
    assert compare_errors(champion, challenger[:0]) == compare_errors(champion[:0], challenger) == []


def test_groups_are_tested_together_and_lineages_are_not() -> None:
    """Two accelerators and all rows share one correction; those of a lineage are listed without a test."""
    errors = np.linspace(0.5, 0.6, 8)
    accelerator = ["a"] * 4 + ["b"] * 4
    compared = compare_errors(scores(*errors, accelerator=accelerator), scores(*errors / 9, accelerator=accelerator))
    of_kind = {(one.kind, one.name): one for one in compared}
    assert of_kind["lineage", "l"].verdict == "not tested"
    assert of_kind["all", ""].p_value == of_kind["stack", "s"].p_value == pytest.approx(3 / 128)
    assert of_kind["accelerator", "a"].verdict == "no difference found"


def test_the_challengers_own_numbers_of_configurations_do_not_matter() -> None:
    champion = scores(0.5, 0.5)
    renumbered = pd.concat([scores(0.1, 0.1).assign(configuration=[7, 9])])
    assert compare_errors(champion, renumbered)[0].n_configuration == 2
