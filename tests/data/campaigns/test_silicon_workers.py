from __future__ import annotations

import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.campaigns.silicon_geometry import geometry_of
from roofcast.data.campaigns.silicon_history import History
from roofcast.data.campaigns.silicon_source import SourceRow
from roofcast.data.campaigns.silicon_workers import Stage, workers_of


def a_disaggregated_row(
    concurrency: int = 1214, devices: tuple[int, int] = (4, 8), ep: str = "4_0", **cells: str
) -> SourceRow:
    shape = {
        "id": f"2026_03_25_x_disagg_1024x1024_c{concurrency}_tp8_0_ep{ep}_9", "mode": "disagg",
        "model_path": "deepseek-ai/DeepSeek-R1", "system": "b200_sxm", "backend": "trtllm", "precision": "fp4",
        "isl": "1024", "osl": "1024", "prefill_num_workers": "", "decode_num_workers": "",
        "prefill_tp_size": str(devices[0]), "decode_tp_size": str(devices[1]), "prefill_attention_dp_size": "1",
        "decode_attention_dp_size": "1", "prefill_moe_ep_size": ep.partition("_")[0], "decode_moe_ep_size": "4",
        "silicon_data_source": f"source_file=x.csv; silicon_concurrency={concurrency}; measured=2026-01-29T0",
    }  # fmt: skip
    return SourceRow(1, "2026-03-25.csv", shape | cells)


def test_the_configuration_that_fits_tells_the_workers() -> None:
    row = a_disaggregated_row()
    assert workers_of(row) == (Stage(1, tp=1, dp=4, ep=4), Stage(2, tp=1, dp=8, ep=8))
    geometry = geometry_of(row, History([]))
    assert geometry is not None
    assert (geometry.n_prefill, geometry.n_decode, geometry.n_accelerator) == (4, 16, 20)
    assert geometry.split == "prefill 1 x TP1 DP4, decode 2 x TP1 DP8"


def test_what_a_row_states_goes_first() -> None:
    geometry = geometry_of(a_disaggregated_row(prefill_num_workers="3", decode_num_workers="1"), History([]))
    assert geometry is not None
    assert (geometry.n_prefill, geometry.n_decode) == (12, 8)


@pytest.mark.parametrize(
    "row",
    [
        a_disaggregated_row(concurrency=7),
        a_disaggregated_row(devices=(8, 8)),
        a_disaggregated_row(devices=(4, 4)),
        a_disaggregated_row(ep="8_0"),
        a_disaggregated_row(isl="1000"),
        a_disaggregated_row(system="gb200"),
        a_disaggregated_row(silicon_data_source="source_file=2026-03-25.csv; silicon_concurrency=1214"),
        a_disaggregated_row(silicon_data_source="silicon_concurrency=1214; measured=2025-12-05T0"),
        a_disaggregated_row(128, (8, 8), "1_0", precision="fp8", isl="8192"),  # three configurations that differ
    ],
)
def test_a_row_that_fits_none_or_several_has_no_counts(row: SourceRow) -> None:
    assert workers_of(row) is None


def test_shipped_disaggregated_rows_add_up() -> None:
    rows = load_campaigns(["silicon"])
    apart = rows[rows["n_prefill_accelerator"].notna()]
    assert len(apart) > 600
    assert (apart["n_prefill_accelerator"] + apart["n_decode_accelerator"] == apart["n_accelerator"]).all()
    assert (apart["n_decode_accelerator"] % (apart["tp"] * apart["dp"]) == 0).all()
