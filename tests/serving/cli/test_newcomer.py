"""First steps on the command line: examples, reports, and messages about missing values."""

import json
from pathlib import Path

import pytest

from tests.data.row_builders import SAMPLES
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run
from tests.serving.user_files import an_accelerator_file, write_file

HEADER = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic,load,ttft_s"
DEMAND = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s")


@pytest.mark.usefixtures("home")
def test_the_example_rows_are_predicted(run: Run, tmp_path: Path) -> None:
    out = run.ok("predict", "--example")
    file = write_file(tmp_path, "questions.csv", out)
    command = ("predict", "--rows", file, "--out", tmp_path / "answers.csv", "--level", "0.8", "--json")
    assert json.loads(run(*command)[1]) == {"ok": 3}


@pytest.mark.slow  # reviews every shipped campaign twice
def test_the_campaign_report_ends_with_own_campaigns(run: Run, tmp_path: Path) -> None:
    assert {row["n_read"] is None for row in run.json("campaigns", "--report")} == {False}
    valid = f"{MODEL},{ACCELERATOR},1,120,20,16,mean,,0.061"
    lines = (valid, valid.replace(",,", ",static_batch,"), valid.replace("0.061", "0.000001"))
    write_file(tmp_path, "own.csv", "\n".join((HEADER, *lines)) + "\n")
    run.ok("import", "auto", tmp_path / "own.csv", "--campaign", "mine")
    shipped = SAMPLES.parents[2] / "data/roofcast/data/campaigns/llm_pilot/rows.csv"
    first = "".join(shipped.read_text().splitlines(keepends=True)[:3])
    run.ok("import", "auto", write_file(tmp_path, "copy.csv", first), "--campaign", "copy")
    copy, mine = run.json("campaigns", "--report")[-2:]
    assert (mine["campaign"], mine["n_read"], mine["n_rejected"], mine["n_kept"]) == ("mine", None, 0, 3)
    assert (mine["n_learnable"], mine["rejected"]) == (2, "")
    assert mine["not_learnt"] == "quarantined 1"  # it is faster than the operations admit too
    assert (copy["n_kept"], copy["n_learnable"]) == (2, 0)


def test_a_misspelt_engine_and_a_shipped_campaign_name_are_reported(run: Run, tmp_path: Path) -> None:
    row = f"vlm,{MODEL},{ACCELERATOR},1,120,20,16,mean,,0.061"
    write_file(tmp_path, "own.csv", f"engine,{HEADER}\n{row}\n")
    _, _, err = run("import", "auto", tmp_path / "own.csv", "--campaign", "llm_pilot", "--dry-run")
    assert "engine: 'vlm' is not an engine of the shipped measurements" in err
    assert "did you mean vllm?" in err
    assert "campaign: 'llm_pilot' is also the name of a shipped campaign" in err


def test_a_blank_engine_is_reported(run: Run) -> None:
    overrides = ("--set", "accelerator=h100-sxm-80gb", "--set", "n_accelerator=1", "--dry-run")
    for sample, more in (("vllm_bench/default.json", ()), ("aiperf/concurrency_2.json", ("--set", f"model={MODEL}"))):
        _, _, err = run("import", "auto", SAMPLES / sample, *overrides, *more)
        assert "engine: is blank in" in err
        assert "--set engine=vllm" in err
        assert "engine: " not in run("import", "auto", SAMPLES / sample, *overrides, *more, "--set", "engine=vllm")[2]


@pytest.mark.usefixtures("home")
def test_the_name_of_a_config_is_reported(run: Run, tmp_path: Path) -> None:
    for name, config, expected in (("a", CONFIG, "a"), ("b", {**CONFIG, "_name_or_path": MODEL}, MODEL)):
        write_file(tmp_path, f"{name}/config.json", json.dumps(config))
        question = ("--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")
        status, out, err = run("explain", "--model", tmp_path / name, *question)
        assert (status, out.startswith(f"{expected} on 1 x")) == (0, True), err
        assert ("note: the config has no _name_or_path: the model is called 'a', after its folder" in err) == (
            name == "a"
        )
    assert (
        "after its file"
        in run("explain", "--model", write_file(tmp_path, "c.json", json.dumps(CONFIG)), *question)[2]
    )


def test_an_accelerator_in_a_wrong_unit_is_not_stored(run: Run, tmp_path: Path) -> None:
    file = write_file(tmp_path, "mine.toml", an_accelerator_file(bandwidth_gb_per_s=4.0))
    err = run.error("accelerators", "--add", file)
    message = err
    assert "mine.toml: bandwidth_gb_per_s: is 4, but 54 to 8000" in message
    assert f"copy the file into {tmp_path / 'home' / 'accelerators'}" in message
    assert not (tmp_path / "home" / "accelerators").exists()
