"""A model on the command line: a name of the catalogue, a path, or a repository of the hub."""

import json
from pathlib import Path

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.serving.cli.files import parse_configs, read_model
from tests.serving.http_client import CONFIG


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in the working directory with the name of a catalogue model."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "llama-3.1-8b"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return path


def test_a_quantisation_file_beside_the_config_is_read(folder: Path) -> None:
    (folder / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}', encoding="utf-8")
    ((_, config),) = parse_configs([f"mine={folder}"])
    model = read_model(str(folder), load_catalog())
    assert isinstance(model, dict)
    for fields in (config, model["config"]):
        assert model_from_config(fields, "mine").weight_precision == "fp8"


def test_a_catalogue_name_has_precedence_over_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_model(folder.name, load_catalog()) == folder.name
    assert "write ./llama-3.1-8b for the file or folder of this name" in capsys.readouterr().err


def test_a_folder_without_a_config_is_no_model(folder: Path) -> None:
    folder.with_name("empty").mkdir()
    with pytest.raises(InputError, match=r"no 'empty' is known, and the folder of this name has no config\.json"):
        read_model("empty", load_catalog())


@pytest.mark.parametrize("text", ["./llama-3.1-8b", "llama-3.1-8b/", "llama-3.1-8b/config.json", "mine"])
def test_paths_and_folders_with_unknown_names_are_read(text: str, folder: Path) -> None:
    folder.with_name("mine").symlink_to(folder)
    assert read_model(text, load_catalog()) == {
        "name": Path(text.removesuffix("/config.json")).name,
        "config": CONFIG,
    }
