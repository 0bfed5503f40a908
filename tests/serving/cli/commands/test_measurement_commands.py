"""Messages of `import`, and the listing of `measurements`."""

import gc
import json
import shlex
from pathlib import Path

import pytest

from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.data.store.provenance import Origin
from roofcast.serving.cli.commands.measurement_commands import next_step, summary_text
from roofcast.serving.cli.console import WIDTH
from tests.data.row_builders import SAMPLES
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run

HEADER = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic,ttft_s"
OTHER = "nvidia-l4-24gb"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of four rows: two loads on each of two accelerators."""
    path = tmp_path / "own.csv"
    lines = [f"{MODEL},{part},1,120,20,{n},p50,0.061" for part in (ACCELERATOR, OTHER) for n in (4, 8)]
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def test_stored_rows_are_listed_and_filtered(run: Run, file: Path) -> None:
    assert run("measurements", "--json")[1] == "[]\n"
    run.ok("import", "auto", file, "--campaign", "mine")
    run.ok("import", "auto", file, "--campaign", "other")
    rows = run.json("measurements")
    assert len(rows) == 8
    assert {(row["campaign"], row["ttft_s"], row["itl_s"]) for row in rows} == {
        ("mine", 0.061, None),
        ("other", 0.061, None),
    }
    for options, n in (
        (("--campaign", "mine"), 4),
        (("--accelerator", "l4"), 4),
        (("--campaign", "mine", "--accelerator", OTHER, "--model", MODEL), 2),
        (("--model", "llama-2-7b"), 0),
    ):
        assert len(run.json("measurements", *options)) == n, options
    status, out, err = run("measurements", "--limit", "3")
    assert (status, "the same in each row: campaign mine" in out, out.count(MODEL)) == (0, True, 1)
    assert "ttft_s" in out
    assert "tpot_s" not in out
    assert "only the first 3 rows are listed; raise --limit for more" in " ".join(err.split())
    assert run("measurements", "--limit", "8")[2] == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--campaign", "min"), "campaign: no 'min' is known; did you mean 'mine'"),
        (("--limit", "0"), "--limit: must be greater than or equal to 1"),
    ],
)
def test_a_filter_by_an_unknown_name_is_an_error(
    run: Run, file: Path, options: tuple[str, ...], message: str
) -> None:
    run.ok("import", "auto", file, "--campaign", "mine")
    assert message in run.error("measurements", *options)


def test_a_dry_run_reports_what_an_import_would_store(run: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    file.write_text(file.read_text() + f"mine,{ACCELERATOR},1,120,20,4,p50,0.061\n")
    command = ("import", "auto", file, "--model-config", f"mine={tmp_path / 'config.json'}", "--json")
    for n_new in (5, 0):
        (report,) = json.loads(run(*command, "--dry-run")[1])
        assert (report["n_row"], report["n_new"], report["n_known"], report["is_kept"]) == (
            5,
            n_new,
            5 - n_new,
            False,
        )
        assert (report["format"], report["campaign"]) == ("roofcast_csv", ["roofcast_csv"])
        assert report["model"] == sorted([MODEL, "mine"])
        assert report["accelerator"] == sorted([ACCELERATOR, OTHER])
        with MeasurementStore().migrate() as store:
            assert (store.count(), len(store.models.load())) == ((0, 0) if n_new else (5, 1))
        run.ok(*command)
    file.write_text(file.read_text().replace("0.061", "fast"))
    assert run(*command, "--dry-run")[0] == 2


SHARED = ".sqlite-shm"
"""Suffix of SQLite's shared memory, which the last open connection removes."""


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != SHARED
    }


@pytest.mark.slow
def test_a_dry_run_writes_no_file(run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither without a state folder nor in an existing one."""
    before = contents(tmp_path)
    for home in ("home", ""):
        monkeypatch.setenv("ROOFCAST_HOME", home and str(tmp_path / home))
        monkeypatch.setattr("platformdirs.user_data_path", lambda name: tmp_path / name)
        (report,) = run.json("import", "auto", file, "--dry-run")
        assert (report["n_new"], report["n_known"]) == (4, 0)
        assert contents(tmp_path) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == [file.name]
    run.ok("import", "auto", file)
    gc.collect()  # as the end of the process would, closes the store
    before = contents(tmp_path)
    (report,) = run.json("import", "auto", file, "--dry-run")
    assert (report["n_new"], report["n_known"]) == (0, 4)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_milliseconds_in_a_column_of_seconds_are_refused(run: Run, file: Path, option: tuple[str, ...]) -> None:
    file.write_text(file.read_text().replace("0.061", "61"))
    err = run.error("import", "auto", file, *option)
    assert "ttft_s: looks like milliseconds: the median is " in err
    assert "times the analytic estimate; give seconds" in err


def test_missing_columns_are_reported_with_a_command_that_works(run: Run, tmp_path: Path) -> None:
    sample = tmp_path / "my run.json"
    sample.write_bytes((SAMPLES / "vllm_bench" / "default.json").read_bytes())
    incomplete = tmp_path / "own.csv"
    incomplete.write_text("model,ttft_s\nmeta-llama/Llama-3.1-8B-Instruct,0.1\n")
    for path, columns in ((sample, 3), (incomplete, 6)):
        status, _, err = run("import", "auto", path, "--campaign", "it's mine")
        assert status == 2
        assert "for example, with made-up values in place of yours:" in err
        command = shlex.split(err.splitlines()[-1])
        assert (command[:2], command.count("--set")) == (["roofcast", "import"], columns)
        assert run.json(*command[1:])[0]["campaign"] == ["it's mine"]


def test_the_error_of_an_unknown_model_names_model_config(run: Run, file: Path) -> None:
    file.write_text(file.read_text().replace(MODEL, "ours/my-14b"))
    err = run.error("import", "auto", file)
    assert "own.csv, line 2: model: no 'ours/my-14b' is known" in err
    assert "--model-config NAME=PATH, such as --model-config ours/my-14b=config.json" in err
    for option in ("--set", "--model-config"):
        assert "such as" in run.error("import", "auto", file, option, "x")


@pytest.mark.parametrize("model", ["./nope", "/none/config.json", "nope.json", "~/nope", "../nope"])
@pytest.mark.usefixtures("home")
def test_a_missing_path_is_reported_as_such(run: Run, model: str) -> None:
    demand = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s")
    assert f"no such file or folder: '{model}'" in run.error("recommend", "--model", model, *demand)


@pytest.mark.slow
def test_an_import_is_withdrawn_restored_and_listed(run: Run, file: Path) -> None:
    (imported,) = run.json("import", "auto", file, "--campaign", "mine")
    assert imported["n_quarantined"] == 0
    selection = ("--import", imported["import_id"])
    (changed,) = run.json("measurements", "withdraw", *selection)
    assert (changed["action"], changed["n_row"]) == ("withdrawal", 4)
    assert {row["state"] for row in run.json("measurements")} == {"withdrawn"}
    assert "4 rows withdrawn before, and still so" in " ".join(
        run("import", "auto", file, "--campaign", "mine")[2].split()
    )
    assert run.json("measurements", "restore", "--campaign", "mine")[0]["n_row"] == 4
    (summary,) = run.json("measurements", "imports")
    assert (summary["key"], summary["n_row"], summary["n_withdrawn"]) == ("", 4, 0)
    assert run("measurements", "withdraw")[0] != 0
    assert "give exactly one of" in run("measurements", "withdraw")[2]


@pytest.mark.slow
def test_a_row_in_quarantine_is_confirmed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "slow.csv"
    path.write_text(f"{HEADER}\n{MODEL},{ACCELERATOR},1,120,20,4,p50,8\n")
    status, out, err = run("import", "auto", path, "--campaign", "mine", "--json")
    (imported,) = json.loads(out)
    assert (status, imported["n_quarantined"]) == (0, 1)
    assert "1 row is in quarantine: far from what others measured" in " ".join(err.split())
    (changed,) = run.json("measurements", "confirm", "--import", imported["import_id"])
    assert changed["n_row"] == 1


def test_a_summary_has_counts_and_names_in_lines_of_80_characters() -> None:
    models = [f"owner/a-model-of-a-long-name-{n}" for n in range(9)]
    names = {"campaign": ["mine"], "model": models, "accelerator": ["nvidia-l4-24gb"]}
    counts = {"n_row": 9, "n_new": 7, "n_known": 2, "n_failed_run": 0, "n_quarantined": 3, "n_claimed": 0}
    text = summary_text({"format": "vllm", **names, **counts, "import_id": "ab12"})
    assert text.startswith("9 rows of the format vllm: 7 new, 2 stored before, 3 in quarantine\ncampaign mine\n")
    assert "name-4 and 4 more\naccelerator nvidia-l4-24gb\nimport ab12" in text
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("kept", "n_new", "expected"),
    [
        (False, 2, "without --dry-run the rows are stored"),
        (True, 0, "all rows were stored before"),
        (True, 2, "`roofcast stacks add my-stack 'my file.csv'`"),
    ],
)
def test_an_import_says_what_to_do_next(kept: bool, n_new: int, expected: str) -> None:
    assert expected in next_step({"is_kept": kept, "n_new": n_new, "n_claimed": 0}, [Path("my file.csv")])


def test_rows_of_a_key_are_claimed_by_an_option_alone(run: Run, file: Path) -> None:
    with MeasurementStore().migrate() as store:
        run.ok("import", "auto", file, "--campaign", "mine")
        (imported,) = run.json("measurements", "imports")
        rows = store.load()
        store.provenance.change("withdrawal", "me", {"import_id": imported["import_id"]})
        moved = rows.assign(campaign="theirs")
        store.add(moved, origin=Origin("ci", is_operator=False))
    command = ("import", "auto", file, "--campaign", "theirs", "--json")
    for options, n_claimed, text in (
        (("--dry-run",), 0, "4 rows are stored by the key 'ci' (4) and not claimed"),
        ((), 0, "import again with --claim"),
        (("--claim", "--dry-run"), 4, "the import would make them the operator's"),
        (("--claim",), 4, "`roofcast measurements withdraw --import"),
    ):
        status, out, err = run(*command, *options)
        (report,) = json.loads(out)
        assert (status, report["n_claimed"], report["n_of_key"]) == (0, n_claimed, {"ci": 4})
        assert text in " ".join(err.split())


def test_a_dry_run_counts_the_rows_for_quarantine(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "slow.csv"
    path.write_text(f"{HEADER}\n{MODEL},{ACCELERATOR},1,120,20,4,p50,8\n")
    status, out, err = run("import", "auto", path, "--dry-run", "--json")
    assert (status, json.loads(out)[0]["n_quarantined"]) == (0, 1)
    assert "1 row would be in quarantine" in " ".join(err.split())
