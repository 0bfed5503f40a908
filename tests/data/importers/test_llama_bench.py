from pathlib import Path
from typing import Any

import pytest

from roofcast.data.errors import SchemaError
from tests.data.importers.clients import rows, sample, with_changes

KINDS = ("json", "jsonl", "csv", "md")


def bench(kind: str, model: str | None = None) -> list[dict[Any, Any]]:
    file = sample(f"llama_bench/two_3090.{kind}")
    return rows(file, model=model, accelerator=None, n_accelerator=None).to_dict("records")


@pytest.mark.parametrize("kind", KINDS)
def test_a_test_is_a_row(kind: str) -> None:
    prompt, generation, deep, both = bench(kind, "Qwen3-32B" if kind == "md" else None)
    assert (prompt["n_input_token"], prompt["n_output_token"], prompt["ttft_s"]) == (512, 1, pytest.approx(1.25))
    assert (generation["n_input_token"], generation["n_output_token"]) == (1, 128)
    assert generation["tpot_s"] == pytest.approx(1 / 32)
    assert (deep["n_input_token"], deep["prefix_cache_ratio"], deep["ttft_s"]) == (2560, 0.8, pytest.approx(1.6))
    assert both["e2e_s"] == pytest.approx(5.3, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_setup_is_that_of_the_file(kind: str) -> None:
    row = bench(kind, "Qwen3-32B" if kind == "md" else None)[0]
    expected = {
        "model": "Qwen3-32B", "accelerator": "NVIDIA GeForce RTX 3090", "n_accelerator": 2, "tp": 1, "pp": 2,
        "engine": "llama.cpp", "engine_version": "b6520", "weight_precision": "int4", "kv_precision": "int8",
        "concurrency": 1, "load": "static_batch",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_an_architecture_names_no_model() -> None:
    with pytest.raises(SchemaError, match="model: is not in the file"):
        bench("md")


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"n_gpu_layers": 0}, "accelerator"),
        ({"backends": "CPU"}, "accelerator"),
        ({"gpu_info": ""}, "accelerator"),
        ({"gpu_info": "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 4090"}, "accelerator"),
        ({"model_filename": ""}, "model"),
    ],
)
def test_cells_that_the_file_lacks_are_named(tmp_path: Path, changes: dict[str, object], missing: str) -> None:
    file = with_changes("llama_bench/two_3090.jsonl", tmp_path, changes)
    with pytest.raises(SchemaError, match=f"{missing}: is not in the file"):
        rows(file, model=None, accelerator=None, n_accelerator=None)


def test_each_run_of_one_log_lists_its_devices(tmp_path: Path) -> None:
    file = tmp_path / "log.md"
    file.write_text(2 * sample("llama_bench/two_3090.md").read_text())
    table = rows(file, model="Qwen3-32B", accelerator=None, n_accelerator=None)
    assert table["n_accelerator"].tolist() == 8 * [2]


def test_a_table_with_another_test_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    file.write_text(sample("llama_bench/two_3090.md").read_text().replace("tg128 |", "xx128 |"))
    with pytest.raises(SchemaError, match=r"table\.md, line 7: test: must be a test such as pp512"):
        rows(file)
