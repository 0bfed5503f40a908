from __future__ import annotations

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.launcher import build_launcher, read_examples
from tests.data.row_builders import SAMPLES

ROOT = SAMPLES / "training"


def built() -> BuildResult:
    return build_launcher(ROOT)


def reasons() -> dict[str, str]:
    rejected = built().rejected
    return dict(zip(rejected["reference"], rejected["reason"], strict=True))


def test_scaling_row_is_two_runs_on_superpods() -> None:
    rows = built().rows
    t5 = rows[rows["model"] == "nvidia/t5-3b"].set_index("n_node")
    assert t5["throughput_token_per_s"].to_dict() == {5.0: 489345.0, 20.0: 1701415.0}
    assert t5["n_accelerator"].to_dict() == {5.0: 40.0, 20.0: 160.0}
    assert set(t5["accelerator"]) == {"nvidia-a100-sxm-80gb"}


def test_second_table_under_gpt_is_of_175b() -> None:
    rows = built().rows
    assert sorted(rows[rows["model"] == "openai/gpt3-175b"]["n_accelerator"]) == [256, 1024]
    assert (rows[rows["model"] == "NeMo/gpt3_5b"]["date"] != "2022-07-14").all()


def test_convergence_table_has_batch_and_rate() -> None:
    rows = built().rows
    row = rows[rows["model"] == "nvidia/t5-220m"].iloc[0]
    assert (row["n_accelerator"], row["n_global_batch_sequence"], row["n_token_per_sequence"]) == (32, 2048, 512)
    assert row["throughput_token_per_s"] == 3273728


def test_rows_that_are_not_runs_are_rejected() -> None:
    assert set(reasons().values()) == {"malformed", "not_a_run", "placeholder", "superseded", "unknown_accelerator"}
    assert reasons()["perf_tables.jsonl:2"] == "placeholder"


def test_misprints_are_identified_by_cells() -> None:
    superseded = {reference for reference, reason in reasons().items() if reason == "superseded"}
    assert superseded == {"perf_tables.jsonl:20", "perf_tables.jsonl:21"}


def test_details_have_no_script_comments() -> None:
    details = " ".join(built().rejected["detail"])
    assert "must be .nemo file" not in details
    assert ">" not in details


def test_examples_come_from_their_page() -> None:
    assert all(found.reference != "perf_tables.jsonl:1" for found in read_examples(ROOT))
