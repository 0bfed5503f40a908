from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.campaigns.heitor_gx10 import RAW, SMALL, build_heitor_gx10
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

RUN = {
    "label": "qwen3-4b", "ts": 1780811207, "runs": 3, "max_tokens": 256, "ttft_ms": {"mean": 32.0},
    "decode_tps": {"mean": 62.5},
    "concurrency": {"1": {"agg_tps": 62.0, "tot_tokens": 256, "wall_s": 4.13},
                    "4": {"agg_tps": 240.0, "tot_tokens": 960, "wall_s": 4.0}},
}  # fmt: skip


def write(root: Path, name: str, run: object) -> None:
    file = root / RAW / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(run))


def test_prompts_of_the_client_give_the_lengths(tmp_path: Path) -> None:
    write(tmp_path, f"{SMALL}/qwen3-4b.json", RUN)
    rows = build_heitor_gx10(tmp_path).rows
    row = one(rows, n_input_token=9)
    assert (row["ttft_s"], row["weight_precision"], row["stack"]) == (0.032, "fp4", "heitor")
    assert one(rows, load="closed_loop", n_input_token=20)["tpot_s"] == 0.016
    row = one(rows, load="static_batch", concurrency=4)
    assert (row["n_output_token"], row["output_throughput_token_per_s"]) == (240, 240)


def test_rejections_by_rule(tmp_path: Path) -> None:
    write(tmp_path, f"{SMALL}/qwen3-4b.json", RUN)
    write(tmp_path, f"{SMALL}/qwen3-4b.coresident.json", RUN)
    write(tmp_path, f"{SMALL}/gpt-oss-20b.json", {"label": "gpt-oss-20b", "blocked": True})
    write(tmp_path, "results/qwen3-32b-nvfp4.json", {"single_stream": {}, "concurrency": [{}, {}]})
    result = build_heitor_gx10(tmp_path)
    assert rules(result) == {"shared_accelerator": 4, "no_outcome": 1, "no_lengths": 3}
    assert result.n_read == len(result.rows) + len(result.rejected)


def test_missing_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no result file"):
        build_heitor_gx10(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("heitor_gx10", build_heitor_gx10)
