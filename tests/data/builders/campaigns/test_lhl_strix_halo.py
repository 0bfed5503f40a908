from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.campaigns.lhl_strix_halo import RAW, build_lhl_strix_halo
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules


def a_run(mode: str, value: int, token_per_s: float, number: int = 6077, **fields: object) -> dict[str, object]:
    bench = {
        "build_number": number, "flash_attn": bool(fields.get("fa")), "n_ubatch": 512,
        "test_time": "2025-08-05T23:54:00Z",
    }  # fmt: skip
    run = {"mode": mode, "value": value, "tokens_per_sec": token_per_s, "build": "llama.cpp-hip", "bench_raw": bench}
    return run | {"fa": "", "b": "", "hipblaslt": ""} | fields


def write_runs(root: Path, name: str, *runs: dict[str, object]) -> None:
    file = root / RAW / name / "results.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(map(json.dumps, runs)))


def test_one_setting_stands_for_a_workload(tmp_path: Path) -> None:
    write_runs(
        tmp_path,
        "Qwen3-32B-Q8_0",
        a_run("pp", 512, 400.0),
        a_run("pp", 512, 500.0, fa="-fa 1"),
        a_run("pp", 512, 600.0, fa="-fa 1", b="-b 256"),
        a_run("pp", 512, 700.0, number=5863, fa="-fa 1"),
        a_run("tg", 128, 5.0),
    )
    result = build_lhl_strix_halo(tmp_path)
    assert rules(result) == {"other_setting": 3}
    row = one(result.rows, n_input_token=512)
    assert (row["ttft_s"], row["n_output_token"], row["flash_attention"]) == (512 / 500, 1, True)
    row = one(result.rows, n_input_token=1)
    assert (row["tpot_s"], row["n_output_token"], row["flash_attention"]) == (0.2, 128, False)
    assert (row["weight_precision"], row["engine_version"], row["stack"]) == ("int8", "b6077", "lhl/hip")


def test_precision_that_the_table_lacks_is_rejected(tmp_path: Path) -> None:
    write_runs(tmp_path, "Qwen3-235B-A22B-Instruct-2507-UD-Q3_K_XL", a_run("tg", 128, 5.0))
    write_runs(tmp_path, "gpt-oss-20b-F16", a_run("tg", 128, 65.0))
    result = build_lhl_strix_halo(tmp_path)
    assert rules(result) == {"unknown_precision": 1}
    assert result.rows["weight_precision"].tolist() == ["fp4"]


def test_missing_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"no results\.jsonl"):
        build_lhl_strix_halo(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("lhl_strix_halo", build_lhl_strix_halo)
