from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.habana import RAW, build_habana
from roofcast.data.errors import SchemaError
from tests.data.row_builders import SAMPLES

ROOT = SAMPLES / "training"
LLAMA = "huggyllama/llama-7b"


def built() -> BuildResult:
    return build_habana(ROOT)


def row(method: str, **cells: object) -> pd.Series:
    chosen = built().rows
    for name, value in {"accelerator": "intel-gaudi2-96gb", "method": method, **cells}.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_lora_over_packed_sequences() -> None:
    lora = row("lora", model=LLAMA, sharding="ddp")
    assert (lora["n_accelerator"], lora["adapter_rank"], lora["packing"]) == (8, 8, "packed")
    assert (lora["n_global_batch_sequence"], lora["n_token_per_sequence"]) == (8 * 2 * 8, 512)
    assert lora["throughput_token_per_s"] == pytest.approx(148.093 * 512)
    assert lora["step_time_s"] == pytest.approx(128 / 148.093, rel=1e-5)
    assert lora["duration_s"] == pytest.approx(294.5707)


def test_batch_is_blank_with_context_parallelism() -> None:
    shared = row("lora", model=LLAMA, cp=4)
    assert pd.isna(shared["n_global_batch_sequence"])
    assert (shared["n_token_per_sequence"], shared["sharding"]) == (2048, "zero1")


def test_padded_samples_and_unknown_lengths_are_rejected() -> None:
    rejected = built().rejected
    unpacked = rejected[rejected["reason"] == "unpacked"]
    assert len(unpacked) >= 2
    assert set(built().rows["packing"]) == {"packed"}


def test_language_model_has_default_block_length_of_script() -> None:
    assert row("full", model="openai-community/gpt2-xl")["n_token_per_sequence"] == 1024


def test_rejections_by_rule() -> None:
    reasons = built().rejected["reason"]
    assert sorted(set(reasons)) == [
        "copied_baseline",
        "no_configuration",
        "not_training",
        "unknown_accelerator",
        "unpacked",
    ]


@pytest.mark.parametrize("text", ["[]", "{", "nothing"])
def test_broken_file_raises_schema_error(text: str, tmp_path: Path) -> None:
    folder = tmp_path / RAW
    folder.mkdir(parents=True)
    (folder / "baselines_fixture_tests_test_examples.json").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=r"baselines_fixture_tests_test_examples\.json"):
        build_habana(tmp_path)
