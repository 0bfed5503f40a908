from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.mistralrs import ACCELERATORS, CPU_FILES, RAW, REPORT, build_mistralrs
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

TEXT = """# mistral.rs v0.8.2 Report
| Mode | Points |
|---|---:|
| Decode | 6 |
### GB10
#### Gemma 4 E4B
##### Q4_K_M Prefill
| Length | mistral.rs UQFF q4 | llama.cpp GGUF Q4_K_M | mistral.rs speedup |
|---:|---:|---:|---:|
| 128 | 4643.5 | 3170.7 | 1.465x |
##### Q4_K_M Decode
| Depth | mistral.rs UQFF q4 | llama.cpp GGUF Q4_K_M | mistral.rs speedup |
|---:|---:|---:|---:|
| 128 | 68.0 | 61.6 | 1.104x |
### H100 SXM
#### Gemma 4 26B-A4B
##### BF16 Prefill
| Length | mistral.rs BF16 | vLLM BF16 | mistral.rs speedup |
|---:|---:|---:|---:|
| 512 | 5688.9 | 6265.5 | 0.908x |
"""


def a_line(mode: str, tps: float, **cells: object) -> str:
    return json.dumps(
        {"engine": "llamacpp", "model": "qwen3-4b", "quant": "q4k", "length": 128, "mode": mode, "tps": tps, **cells}
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistralrs")
    (folder / RAW).mkdir(parents=True)
    (folder / RAW / REPORT).write_text(TEXT)
    gb10, x86 = CPU_FILES
    lines = [
        a_line("prefill", 90.0),
        a_line("prefill", 100.0),
        a_line("decode", 40.0),
        a_line("decode", 30.0, note="fa=0"),
        a_line("decode", 30.0, quant="q6k"),
    ]
    (folder / RAW / gb10).write_text("\n".join(lines))
    (folder / RAW / x86).write_text("")
    return folder


@pytest.fixture(scope="module")
def result(root: Path) -> BuildResult:
    return build_mistralrs(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"unknown_precision": 1, "superseded": 1, "unknown_accelerator": 3}
    assert result.n_read == 11


def test_speeds_of_one_length_are_one_row(result: BuildResult) -> None:
    row = one(result.rows, engine="mistral.rs", n_output_token=256)
    assert (row["ttft_s"], row["tpot_s"]) == pytest.approx((128 / 4643.5, 1 / 68), rel=1e-5)
    assert (row["weight_precision"], row["engine_version"], row["stack"]) == ("int4", "0.8.2", "mistralrs/gb10")


def test_speed_of_a_prompt_alone_is_an_answer_of_one_token(result: BuildResult) -> None:
    row = one(result.rows, engine="vllm")
    assert (row["n_output_token"], row["engine_version"], row["prefix_caching"]) == (1, "0.19.0", "off")
    assert row["ttft_s"] == pytest.approx(512 / 6265.5, rel=1e-5)


def test_last_row_of_a_log_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACCELERATORS, "CPU of GB10", "amd-epyc-4th-gen-genoa")
    rows = build_mistralrs(root).rows
    rows = rows[rows["accelerator"] == "amd-epyc-4th-gen-genoa"]
    assert one(rows, flash_attention=True)["ttft_s"] == 1.28
    assert one(rows, flash_attention=False)["tpot_s"] == pytest.approx(1 / 30, rel=1e-5)


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_mistralrs(tmp_path)


def test_table_without_engine_raises_schema_error(tmp_path: Path) -> None:
    (tmp_path / RAW).mkdir(parents=True)
    text = "# GB10\n## Gemma 4 E4B\n### BF16 Decode\n| Depth | other |\n|---|---|\n| 1 | 2 |\n"
    (tmp_path / RAW / REPORT).write_text(text)
    with pytest.raises(SchemaError, match="must have a column of an engine's speed"):
        build_mistralrs(tmp_path)
