"""Command of the builders: written and compared files, and the download of pinned files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import httpx
import pandas as pd
import pytest

from builders.build import TOPICS, Topic, main, save
from builders.build_result import BuildResult
from builders.pinned import download
from builders.published import FileSet
from builders.recipe import Recipe, Source, load_recipe
from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.measurements.validation import row_ids

ORDER = TOPICS[0].order


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.package)
def test_every_shipped_campaign_has_a_recipe_that_loads(topic: Topic) -> None:
    shipped = {file.parent.name for file in topic.shipped.glob("*/campaign.toml")}
    assert set(topic.recipes) == shipped
    assert {load_recipe(file, f"builders.{topic.package}").name for file in topic.recipes.values()} == shipped


def test_rows_round_trip_and_rejected_rows_have_their_rules(tmp_path: Path) -> None:
    rows, file = load_campaigns(["heitor_gx10"]), tmp_path / "rejected" / "some.csv"
    (tmp_path / "campaign.toml").write_text("n_read = 1\nn_row = 1\n")
    rejected = pd.DataFrame({"reference": ["run 7"], "reason": ["placeholder"], "detail": ["ttft is 0"]})
    save(BuildResult(rows.sample(frac=1, random_state=0), 31, rejected), tmp_path, file, ORDER)
    again = read_measurements("roofcast_csv", [tmp_path / "rows.csv"], "heitor_gx10")
    assert row_ids(again) == row_ids(rows)
    assert pd.read_csv(file).equals(rejected)
    counts = "n_read = 31\nn_row = 30\n"
    assert (tmp_path / "campaign.toml").read_text() == f"{counts}\n[rejected]\nplaceholder = 1\n"
    save(BuildResult(rows, n_read=31), tmp_path, file, ORDER)
    assert not file.exists()
    assert (tmp_path / "campaign.toml").read_text() == counts


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["heitor", "--raw", "."], "unknown campaign heitor; choose from"),
        (["heitor_gx10", "--raw", "."], "error: heitor_gx10: "),
        (["aws_neuron"], "no address holds these files: pass --raw with a folder that has raw/aws_neuron"),
    ],
)
def test_what_cannot_be_built_is_an_error(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert problem in capsys.readouterr().err


def an_archive(*names: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(f"repo-0123/{name}")
            info.size = 2
            tar.addfile(info, io.BytesIO(b"ok"))
    return stream.getvalue()


def a_client(status: int, content: bytes = b"") -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(lambda _request: httpx.Response(status, content=content)))


def a_recipe(*, flat: bool = False, glob: str = "**/*.json") -> Recipe:
    source = Source("raw/some", "https://example.org/some.tar.gz", flat=flat)
    return Recipe("some", source, (FileSet((glob,), "json"),))


@pytest.mark.parametrize(
    ("flat", "glob", "files"),
    [(False, "**/*.json", ["a.json", "b/c.json"]), (True, "b__*.json", ["b__c.json"])],
)
def test_pinned_files_are_laid_out_as_the_recipe_reads_them(
    flat: bool, glob: str, files: list[str], tmp_path: Path
) -> None:
    content = an_archive("a.json", "b/c.json", "b/d.md", "../x.json")
    download(a_recipe(flat=flat, glob=glob), tmp_path, a_client(200, content))
    folder = tmp_path / "raw" / "some"
    assert sorted(f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file()) == files


@pytest.mark.parametrize(
    ("client", "problem"),
    [
        (a_client(404), r"cannot download https://example\.org/some\.tar\.gz: .*404.*; connect to the network, or"),
        (a_client(200, an_archive("a.md")), r"has no file \*\*/\*\.json"),
    ],
)
def test_failed_download_says_how_to_go_on(client: httpx.Client, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=problem):
        download(a_recipe(), tmp_path, client)
