import importlib.machinery
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.serving.cli.commands import offers
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run
from tests.serving.user_files import ID, OFFER_HEADER, an_accelerator_file, an_offer_file, write_file

SKYPILOT = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
    "g6.xlarge,L4,1,4,16,,0.8,0.3,us-east-1,us-east-1a\n"
    "g6.xlarge,L4,1,4,16,,0.8,0.2,us-east-1,us-east-1b\n"
    "x1.huge,Q9000,1,4,16,,9.9,,us-east-1,us-east-1a\n"
    "m5.large,,,2,8,,0.1,,us-east-1,us-east-1a\n"
)


@pytest.fixture
def state_folder(tmp_path: Path) -> Path:
    """Return the state_folder folder of the environment, which need not exist yet."""
    return tmp_path / "home"


def own_offers(run: Run, provider: str) -> list[dict[str, Any]]:
    return [row for row in run.json("offers") if row["provider"] == provider]


def test_the_template_is_added_as_an_accelerator(run: Run, tmp_path: Path, state_folder: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(run("accelerators", "--template")[1], encoding="utf-8")
    out = " ".join(run.ok("accelerators", "--add", file).split())
    assert out == f"{ID} is stored in {state_folder / 'accelerators' / f'{ID}.toml'}"
    assert (state_folder / "accelerators" / f"{ID}.toml").read_bytes() == file.read_bytes()
    assert ID in {row["id"] for row in run.json("accelerators")}
    assert "exists already; replace it with --replace" in run.error("accelerators", "--add", file)
    assert [path.name for path in (state_folder / "accelerators").iterdir()] == [f"{ID}.toml"]


def test_an_own_accelerator_is_replaced(run: Run, tmp_path: Path, state_folder: Path) -> None:
    file = write_file(tmp_path, "mine.toml", an_accelerator_file())
    err = run.error("accelerators", "--add", file, "--replace")
    assert f"replace: you have no accelerator '{ID}'; leave --replace out to add it" in err
    run.ok("accelerators", "--add", file)
    write_file(tmp_path, "mine.toml", an_accelerator_file(memory_gib=192))
    run.ok("accelerators", "--add", file, "--replace")
    (own,) = [row for row in run.json("accelerators") if row["id"] == ID]
    assert own["memory_byte"] == 192 * 2**30
    write_file(tmp_path, "mine.toml", an_accelerator_file(name="A100-PCIe-80GB"))
    assert "already names 'nvidia-a100" in run.error("accelerators", "--add", file, "--replace")
    assert "memory_gib = 192" in (state_folder / "accelerators" / f"{ID}.toml").read_text()


@pytest.mark.usefixtures("home")
def test_an_accelerator_without_a_price_is_reported(run: Run, tmp_path: Path) -> None:
    run.ok("accelerators", "--add", write_file(tmp_path, "mine.toml", an_accelerator_file()))
    demand = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s", "--top", "1", "--json")
    command = ("recommend", "--model", MODEL, *demand, "--accelerator", ID)
    assert f"{ID}: no price is known; add one with `roofcast offers --add FILE`" in run.error(*command)
    _, out, err = run(*command, "--accelerator", ACCELERATOR)
    assert f"warning: {ID} is left out: no price is known" in err
    assert {entry["accelerator"] for entry in json.loads(out)["entries"]} <= {ACCELERATOR}
    run.ok("offers", "--add", write_file(tmp_path, "a.csv", an_offer_file()))
    assert "no price" not in run(*command)[2]


def test_a_suspicious_accelerator_is_stored_with_a_warning(run: Run, tmp_path: Path) -> None:
    text = an_accelerator_file(peak_fp8_tflop_per_s=3200)
    _, out, err = run("accelerators", "--add", write_file(tmp_path, "mine.toml", text))
    assert "is stored in" in out
    assert f"warning: {ID}: peak_flop_per_s.fp8" in err
    assert "may be a sparse peak" in err
    assert "correct your file and add it again with --replace" in err
    findings = run.json("accelerators", "--lint")
    assert ID in {row["accelerator"] for row in findings}
    assert {"rule", "field", "problem", "reason"} < set(findings[0])
    assert ID in run.ok("accelerators", "--lint")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (an_accelerator_file(memory_gib=0), "line 9: memory_gib"),
        (an_accelerator_file(id="../up"), "mine.toml, line 2: id: must be made of"),
        (an_accelerator_file(name="A100-PCIe-80GB"), "name: 'A100-PCIe-80GB' already names"),
    ],
)
def test_an_invalid_accelerator_is_not_stored(
    run: Run, tmp_path: Path, state_folder: Path, text: str, problem: str
) -> None:
    err = run.error("accelerators", "--add", write_file(tmp_path, "mine.toml", text))
    assert problem in err
    assert not (state_folder / "accelerators").exists()


def test_a_broken_file_of_the_same_name_is_reported_and_replaced(
    run: Run, tmp_path: Path, state_folder: Path
) -> None:
    write_file(state_folder, f"accelerators/{ID}.toml", "memory_gb = 80\n")
    err = run.error("accelerators", "--add", write_file(tmp_path, "mine.toml", an_accelerator_file()))
    assert f"warning: accelerators/{ID}.toml, line 1: memory_gb: is no field" in err
    assert "exists already; replace it with --replace" in err
    out = " ".join(run.ok("accelerators", "--add", tmp_path / "mine.toml", "--replace").split())
    assert f"{ID} is stored in" in out


def test_offers_are_stored_in_us_dollars(run: Run, tmp_path: Path, state_folder: Path) -> None:
    header = f"{OFFER_HEADER},currency,host_memory_gib"
    rows = (f"attic,box,{ACCELERATOR},2.50,2026-11-01,EUR,512", f"attic,small,{ACCELERATOR},1,2026-11-01,,")
    file = write_file(tmp_path, "my prices.csv", "\n".join((header, *rows)) + "\n")
    err = run.error("offers", "--add", file)
    assert "my prices.csv, line 2: rate of EUR: is missing" in err
    assert not (state_folder / "offers").exists()
    out = " ".join(run.ok("offers", "--add", file, "--rate", "eur=1.08").split())
    assert out == f"2 offers are stored in {state_folder / 'offers' / 'my_prices.csv'}"
    box, small = sorted(own_offers(run, "attic"), key=lambda row: str(row["instance_type"]))
    assert (float(box["price_usd_per_h"]), float(small["price_usd_per_h"])) == (2.7, 1)
    assert box["memory_byte"] == 512 * 2**30
    assert "2.50 EUR at 1.08 USD" in box["source"]
    assert (float(box["listed_price_per_h"]), box["listed_currency"]) == (2.5, "EUR")
    assert (small["listed_price_per_h"], small["listed_currency"]) == (None, "USD")
    write_file(tmp_path, "my prices.csv", f"{header}\n{rows[1]}\n")
    err = run.error("offers", "--add", file)
    assert "would drop 1 offers that my_prices.csv holds, such as attic/unknown/box" in err
    assert len(own_offers(run, "attic")) == 2
    _, out, err = run("offers", "--add", file, "--replace")
    assert "attic/unknown/small/on_demand at 1 USD/h is stored in" in out
    assert "warning: the earlier offers of my_prices.csv are replaced" in err
    assert len(own_offers(run, "attic")) == 1


def test_file_names_are_reduced_to_safe_characters(run: Run, tmp_path: Path, state_folder: Path) -> None:
    for name in ("...csv", "été.csv", "x" * 200 + ".csv"):
        run.ok("offers", "--add", write_file(tmp_path, name, an_offer_file(f"attic,box,{ACCELERATOR},1,2026-11-01")))
    names = {path.name for path in (state_folder / "offers").iterdir()}
    assert names == {"offers.csv", "_t_.csv", f"{'x' * 100}.csv"}


def test_a_price_list_of_skypilot_is_added(run: Run, tmp_path: Path) -> None:
    add = ("offers", "--add-skypilot", write_file(tmp_path, "vms.csv", SKYPILOT))
    about = ("--provider", "somewhere", "--as-of", "2026-11-01", "--licence", "Apache-2.0")
    _, out, err = run(*add, *about)
    assert out.startswith("2 offers are stored in")
    assert "warning: left out: 1 row of accelerators that no catalogue knows: 1 x Q9000" in err
    assert "warning: left out: 1 row without an offer: 1 x no accelerator" in err
    prices = {row["pricing"]: float(row["price_usd_per_h"]) for row in own_offers(run, "somewhere")}
    assert prices == {"on_demand": 0.8, "spot": 0.2}
    assert {(row["as_of"], row["licence"]) for row in own_offers(run, "somewhere")} == {("2026-11-01", "Apache-2.0")}
    assert "needs --provider and --as-of" in run.error(*add)
    write_file(tmp_path, "vms.csv", SKYPILOT.replace("L4", "Q1"))
    assert "vms.csv: holds no offer of a known accelerator" in run.error(*add, *about)


@pytest.mark.usefixtures("home")
def test_owned_hardware_is_recommended(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rack.toml"
    file.write_text(run("offers", "--owned-template")[1], encoding="utf-8")
    out = " ".join(
        run.ok("offers", "--add-owned", file).split()
    )  # [(60000 / 4 + 1500) / 8760 + 1.48 kW x 1.3 x 0.20] / 0.6
    assert "owned/own/rack-1/on_demand at 3.7806 USD/h is stored" in out
    demand = ("--isl", "120", "--osl", "20", "--users", "20", "--slo", "itl:p50<=50ms", "--provider", "owned")
    assert {entry["instance_type"] for entry in run.json("recommend", "--model", MODEL, *demand)["entries"]} == {
        "rack-1"
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = ", "rack.toml, line 1: is no valid TOML"),
        ('accelerator = "h10"\n', "rack.toml: accelerator: no 'h10' is known"),
        (None, "cannot be read: no such file"),
    ],
)
def test_invalid_owned_hardware_is_refused(
    run: Run, tmp_path: Path, state_folder: Path, text: str | None, problem: str
) -> None:
    file = tmp_path / "rack.toml"
    if text is not None:
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
    assert problem in run.error("offers", "--add-owned", file)
    assert not (state_folder / "offers").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("accelerators", "--template", "--lint"), "lint: cannot be combined with --template; leave one out"),
        (("offers", "--add", "a", "--add-owned", "b"), "add-owned: cannot be combined with --add; leave one out"),
        (("offers", "--rate", "EUR=1"), "rate: requires --add"),
        (("offers", "--provider", "awz"), "provider: no 'awz' is known; did you mean 'aws'"),
        (("offers", "--add", "a", "--refresh", "b"), "refresh: cannot be combined with --add; leave one out"),
        (("offers", "--add", "a", "--rate", "EURO=1"), "rate: must be CURRENCY=USD such as EUR=1.08, got 'EURO=1'"),
        (("offers", "--add", "a", "--rate", "EUR=1", "--rate", "eur=2"), "must name each currency once"),
        (("offers", "--add-skypilot", "a", "--as-of", "soon"), "--as-of: 'soon' does not match the formats"),
    ],
)
def test_incompatible_options_are_errors(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    assert problem in run.error(*arguments)


def test_a_folder_that_cannot_be_written_is_named(run: Run, tmp_path: Path, state_folder: Path) -> None:
    write_file(state_folder, "offers", "in the way")
    file = write_file(tmp_path, "mine.csv", an_offer_file(f"attic,box,{ACCELERATOR},1,2026-11-01"))
    err = run.error("offers", "--add", file, status=1)
    assert "offers: cannot be read: not a directory" in err
    assert "mine.csv cannot be written" in err


def test_old_prices_are_reported(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = max(offer.as_of for offer in load_catalog().offers)
    run.ok("offers", "--add", write_file(tmp_path, "a.csv", an_offer_file(f"attic,box,{ACCELERATOR},1,2020-01-01")))
    monkeypatch.setattr(offers, "today", lambda: newest)
    _, _, err = run("offers")
    assert "prices are more than 120 days old; the oldest is of 2020-01-01" in err


@pytest.mark.usefixtures("home")
def test_a_recommendation_from_old_prices_has_a_warning(run: Run, tmp_path: Path) -> None:
    run.ok("offers", "--add", write_file(tmp_path, "a.csv", an_offer_file(f"attic,box,{ACCELERATOR},1,2020-01-01")))
    demand = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s", "--provider", "attic")
    status, out, err = run("recommend", "--model", MODEL, *demand, "--json")
    assert status == 0, err
    assert json.loads(out)["warnings"] == [line.removeprefix("warning: ") for line in err.strip().splitlines()]
    assert "days old (2020-01-01): check it" in err


def test_engines_lists_the_facts_of_an_engine_and_an_accelerator(run: Run) -> None:
    everything = run.json("engines")
    rows = run.json("engines", "--engine", "tensorrt-llm", "--accelerator", "t4")
    assert 0 < len(rows) < len(everything)
    assert all(row["engine"] == "trtllm" and row["source"] and row["date"] for row in rows)
    assert {row["status"] for row in everything} == {"runs", "unknown", "does_not_run"}
    assert "did you mean" in run.error("engines", "--engine", "vlm")


def test_engines_shows_the_target_of_the_accelerator_alone_and_says_what_it_is(run: Run) -> None:
    assert {tuple(row["targets"]) for row in run.json("engines", "--accelerator", "mi300x")} >= {("gfx942", "gfx950")}
    status, out, err = run("engines", "--accelerator", "mi300x")
    assert status == 0, err
    assert "gfx942 = AMD CDNA3: Instinct MI300X" in err
    assert "MI325X" not in err, "another accelerator of the target"
    assert "reason" in out
    assert "targets gfx942" in out
    assert "gfx942 gfx950" not in out


def install_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, downloads: list[str]) -> None:
    def download(name: str, file: str, *, revision: str | None) -> str:
        if file != "config.json":
            raise FileNotFoundError(file)
        downloads.append(f"{name} {revision}")
        if name.startswith("no/"):
            raise ConnectionError("offline")
        return str(write_file(tmp_path, file, json.dumps(CONFIG)))

    library = types.ModuleType("huggingface_hub")
    library.__spec__ = importlib.machinery.ModuleSpec("huggingface_hub", None)
    library.hf_hub_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)


@pytest.mark.usefixtures("home")
def test_a_model_of_the_hugging_face_hub_is_recommended_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads: list[str] = []
    install_hub(monkeypatch, tmp_path, downloads)
    demand = ("--isl", "120", "--osl", "20", "--users", "2", "--slo", "itl:p50<=1s", "--top", "1", "--json")
    for name in (MODEL, "someone/my-14b@v1"):
        assert json.loads(run.ok("recommend", "--model", name, *demand))["model"] == name.partition("@")[0]
    assert downloads == ["someone/my-14b v1"]
    err = run.error("recommend", "--model", "no/llama", *demand)
    assert "model: no 'no/llama' is known; " in err
    assert "cannot fetch 'no/llama': the hub cannot be reached; go online, or download" in err
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "model: no 'no/llama' is known" in run.error("recommend", "--model", "no/llama", *demand)
    assert len(downloads) == 2
