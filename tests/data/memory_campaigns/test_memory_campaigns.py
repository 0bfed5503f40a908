import pandas as pd
import pytest

from builders.memory_campaigns.assembly import judged_parts
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.memory_schema import START_JUDGED, START_OUTCOME_COLUMNS, validate_starts
from roofcast.data.memory_campaigns import MEMORY_CAMPAIGNS, load_starts, load_starts_info


def test_every_start_has_catalogue_names_a_source_and_an_outcome() -> None:
    rows, catalog = load_starts(), load_catalog()
    assert set(rows["campaign"]) == set(MEMORY_CAMPAIGNS)
    assert len(rows) == sum(load_starts_info(name).n_row for name in MEMORY_CAMPAIGNS)
    assert set(rows["model"]) <= set(catalog.models)
    assert set(rows["accelerator"]) <= set(catalog.accelerators)
    assert (rows["note"] != "").all()
    assert (rows[list(START_OUTCOME_COLUMNS)].notna().any(axis=1) | (rows["status"] != "ok")).all()


def test_parts_that_are_judged_are_known() -> None:
    row = {"model": "m", "checkpoint": "c", "accelerator": "a", "n_accelerator": 1, "campaign": "x"}
    with pytest.raises(SchemaError, match="must be some of weights cache requests starts"):
        validate_starts(pd.DataFrame([{**row, "judged": "weights speed"}]))


@pytest.mark.parametrize(
    ("doubt", "judged"),
    [
        ("", " ".join(START_JUDGED)),
        ("GB printed is GiB", " ".join(START_JUDGED)),
        ("card not in excerpt", "weights"),
        ("patched engine", "weights"),
        ("exact model in page head", ""),
    ],
)
def test_a_doubt_leaves_out_what_rests_on_it(doubt: str, judged: str) -> None:
    figures = dict.fromkeys(START_OUTCOME_COLUMNS, 1e9) | {"max_context_token": 4096.0}
    assert judged_parts({**figures, "status": "ok"}, doubt) == judged
