from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.iog import FILE, LATENCIES, build_iog
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules


def a_run(name: str, rate: float, doubt: str = "") -> list[dict[str, str]]:
    common = {
        "model": "Qwen/Qwen2.5-7B-Instruct", "gpu": "H100 PCIe", "n_accelerator": "2", "engine": "vllm",
        "engine_version": "0.8.5", "weight_precision": "fp16", "n_input_token": "205.0", "n_output_token": "216.7",
        "request_rate": str(rate), "n_request": "200", "date": "2025-06-10", "stack": "iog-h100-pcie-x2",
        "source_url": f"https://example.org/{name}.json", "doubt": doubt, "output_throughput_token_per_s": "855.8",
    }  # fmt: skip
    return [common | {"statistic": s} | dict.fromkeys(LATENCIES, "0.02") for s in ("mean", "p50", "p99")]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("iog")
    rows = [*a_run("first", 4.0), *a_run("again", 4.0), *a_run("slow", 1.0, "looks like a warm-up")]
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]))
    return build_iog(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"doubtful": 1, "repeated_run": 1}
    assert result.n_read == 3


def test_run_is_an_open_loop(result: BuildResult) -> None:
    assert result.rows["statistic"].tolist() == ["mean", "p50", "p99"]
    row = one(result.rows, statistic="mean")
    assert (row["load"], row["request_rate"], row["n_request"], row["tp"]) == ("open_loop", 4, 200, 2)
    assert (row["output_throughput_token_per_s"], row["stack"]) == (855.8, "iog/h100-pcie-x2")


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_iog(tmp_path)
