"""Configs of Hugging Face repositories, and the errors of the hub."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from roofcast.data.errors import InputError
from roofcast.data.model_config.hub import fetch_hub_config, is_hub_id
from roofcast.data.model_config.huggingface import load_model_config
from tests.data.model_config.model_configs import LLAMA_3_1_8B

Download = Callable[..., str]


RepositoryNotFoundError = type("RepositoryNotFoundError", (OSError,), {})
GatedRepoError = type("GatedRepoError", (RepositoryNotFoundError,), {})
EntryNotFoundError = type("EntryNotFoundError", (OSError,), {})
LocalEntryNotFoundError = type("LocalEntryNotFoundError", (EntryNotFoundError, FileNotFoundError), {})
HFValidationError = type("HFValidationError", (ValueError,), {})
"""Fakes of the library's errors, which are recognised by their names."""


def install(monkeypatch: pytest.MonkeyPatch, download: Download) -> None:
    library = types.ModuleType("huggingface_hub")
    library.hf_hub_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)


def test_a_repository_is_downloaded_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads: list[tuple[str, str, str | None]] = []

    def download(name: str, file: str, *, revision: str | None) -> str:
        downloads.append((name, file, revision))
        (tmp_path / file).write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")
        return str(tmp_path / file)

    install(monkeypatch, download)

    spec = load_model_config("someone/my-llama@v1")

    assert (spec.id, spec.n_param) == ("someone/my-llama", 8_030_261_248)
    assert downloads == [("someone/my-llama", file, "v1") for file in ("config.json", "hf_quant_config.json")]


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(InputError, match=r"install roofcast\[hub\].*or download its config\.json"):
        load_model_config("someone/my-llama")


@pytest.mark.parametrize(
    ("error", "expected", "problem"),
    [
        (RepositoryNotFoundError("404"), InputError, "no such repository"),
        (GatedRepoError("401"), InputError, "gated"),
        (EntryNotFoundError("404"), InputError, "no config.json"),
        (LocalEntryNotFoundError("offline"), InputError, "cannot be reached"),
        (ConnectionError("no route"), InputError, "cannot be reached"),
        (HFValidationError("name"), InputError, "owner/name"),
        (ZeroDivisionError("unexpected"), ZeroDivisionError, "unexpected"),
    ],
)
def test_the_error_of_a_failed_download_says_how_to_fix_it(
    error: Exception, expected: type[Exception], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*_: object, **__: object) -> str:
        raise error

    install(monkeypatch, download)

    with pytest.raises(expected, match=problem):
        fetch_hub_config("someone/my-llama")


def test_a_path_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "owner" / "name" / "config.json").write_text(json.dumps(LLAMA_3_1_8B), encoding="utf-8")

    assert load_model_config("owner/name").id == "name"
    with pytest.raises(InputError, match="cannot read"):
        load_model_config(Path("owner/absent"))


@pytest.mark.parametrize("text", ["", "one", "a/b/c", "/etc/passwd", "../a/b", "a/../b", "a b/c", "a/b.json", "é/x"])
def test_other_texts_are_no_repository_names(text: str) -> None:
    assert not is_hub_id(text)
