from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.josealberto_t4x2 import RAW, build_josealberto_t4x2
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one


def test_statistics_are_over_requests(tmp_path: Path) -> None:
    folder = tmp_path / RAW
    folder.mkdir(parents=True)
    folder.joinpath("summary.csv").write_text(
        "label,concurrency,num_prompts,ok,failed,wall_s,throughput_tok_s\ntp2,2,3,2,1,5.0,40\n"
    )
    folder.joinpath("tp2_c2.csv").write_text(
        "ok,ttft_s,total_s,output_tokens,tpot_s\nTrue,0.2,4,80,0.03\nTrue,0.2,5,120,0.05\nFalse,0,0,0,0\n"
    )
    rows = build_josealberto_t4x2(tmp_path).rows
    row = one(rows, statistic="mean")
    assert (row["tpot_s"], row["n_output_token"], row["output_throughput_token_per_s"]) == (0.04, 100, 40)
    assert (row["n_failed"], row["length_variation"]) == (1, 0.2)
    assert rows["ttft_s"].isna().all()
    assert one(rows, statistic="p90")["tpot_s"] == 0.048


def test_missing_summary_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_josealberto_t4x2(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("josealberto_t4x2", build_josealberto_t4x2)
