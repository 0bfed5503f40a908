"""What somebody meets who uses the command line for the first time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.data.row_builders import SAMPLES
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run
from tests.serving.own_things import an_accelerator_file, put

HEADER = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic,load,ttft_s"
DEMAND = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s")


@pytest.mark.usefixtures("home")
def test_the_example_of_questions_is_answered(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("predict", "--example")
    assert status == 0
    file = put(tmp_path, "questions.csv", out)
    ask = ("predict", "--rows", file, "--out", tmp_path / "answers.csv", "--level", "0.8", "--json")
    assert json.loads(run(*ask)[1]) == {"ok": 3}


@pytest.mark.slow  # reviews every shipped campaign twice
def test_the_report_ends_with_ones_own_campaigns(run: Run, tmp_path: Path) -> None:
    assert {row["n_read"] is None for row in json.loads(run("campaigns", "--report", "--json")[1])} == {False}
    sound = f"{MODEL},{ACCELERATOR},1,120,20,16,mean,,0.061"
    lines = (sound, sound.replace(",,", ",static_batch,"), sound.replace("0.061", "0.000001"))
    put(tmp_path, "own.csv", "\n".join((HEADER, *lines)) + "\n")
    assert run("import", "auto", tmp_path / "own.csv", "--campaign", "mine")[0] == 0
    shipped = SAMPLES.parents[2] / "data/roofcast/data/campaigns/llm_pilot/rows.csv"
    first = "".join(shipped.read_text().splitlines(keepends=True)[:3])
    assert run("import", "auto", put(tmp_path, "copy.csv", first), "--campaign", "copy")[0] == 0
    copy, mine = json.loads(run("campaigns", "--report", "--json")[1])[-2:]
    assert (mine["campaign"], mine["n_read"], mine["n_quarantined"], mine["n_kept"]) == ("mine", None, 0, 3)
    assert (mine["n_learnable"], mine["quarantine"]) == (2, "")
    assert mine["not_learnt"] == "faster_than_compute 1"
    assert (copy["n_kept"], copy["n_learnable"]) == (2, 0)


def test_a_misspelt_engine_and_a_shipped_name_are_told_of(run: Run, tmp_path: Path) -> None:
    row = f"vlm,{MODEL},{ACCELERATOR},1,120,20,16,mean,,0.061"
    put(tmp_path, "own.csv", f"engine,{HEADER}\n{row}\n")
    _, _, err = run("import", "auto", tmp_path / "own.csv", "--campaign", "llm_pilot", "--dry-run")
    assert "engine: 'vlm' is not an engine of the shipped measurements" in err
    assert "did you mean vllm?" in err
    assert "campaign: 'llm_pilot' is also the name of a shipped campaign" in err


def test_a_blank_engine_is_told_of(run: Run) -> None:
    sets = ("--set", "accelerator=h100-sxm-80gb", "--set", "n_accelerator=1", "--dry-run")
    for sample, more in (("vllm_bench/default.json", ()), ("aiperf/concurrency_2.json", ("--set", f"model={MODEL}"))):
        _, _, err = run("import", "auto", SAMPLES / sample, *sets, *more)
        assert "engine: is blank in" in err
        assert "--set engine=vllm" in err
        assert run("import", "auto", SAMPLES / sample, *sets, *more, "--set", "engine=vllm")[2] == ""


def test_the_values_of_an_example_are_called_made_up(run: Run) -> None:
    _, _, err = run("import", "auto", SAMPLES / "vllm_bench" / "default.json")
    assert "for example, with made-up values in place of yours:" in err


@pytest.mark.usefixtures("home")
def test_how_a_model_is_called_is_told(run: Run, tmp_path: Path) -> None:
    for name, config, called in (("a", CONFIG, "a"), ("b", {**CONFIG, "_name_or_path": MODEL}, MODEL)):
        put(tmp_path, f"{name}/config.json", json.dumps(config))
        question = ("--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20")
        status, out, err = run("explain", "--model", tmp_path / name, *question)
        assert (status, out.startswith(f"{called} on 1 x")) == (0, True), err
        assert ("note: the config has no _name_or_path: the model is called 'a', after its folder" in err) == (
            name == "a"
        )
    assert "after its file" in run("explain", "--model", put(tmp_path, "c.json", json.dumps(CONFIG)), *question)[2]


def test_an_accelerator_with_a_slip_of_the_unit_is_not_kept(run: Run, tmp_path: Path) -> None:
    file = put(tmp_path, "mine.toml", an_accelerator_file(bandwidth_gb_per_s=4.0))
    status, _, err = run("accelerators", "--add", file)
    said = " ".join(err.split())
    assert (status, "mine.toml: bandwidth_gb_per_s: is 4, but 54 to 8000" in said) == (2, True), err
    assert f"copy the file into {tmp_path / 'home' / 'accelerators'}" in said
    assert not (tmp_path / "home" / "accelerators").exists()
    suspicious = an_accelerator_file(peak_fp8_tflop_per_s=3200)
    _, _, err = run("accelerators", "--add", put(tmp_path, "mine.toml", suspicious))
    assert "correct your file and add it again with --replace" in " ".join(err.split())
