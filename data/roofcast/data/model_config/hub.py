"""Configs from the Hugging Face hub, by `huggingface_hub` if installed; the service never uses it."""

import contextlib
import importlib
import re
from pathlib import Path
from typing import Final

from roofcast.data.errors import InputError

QUANTISATION_FILE: Final = "hf_quant_config.json"
"""ModelOpt's file beside a ``config.json``."""

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}(@[\w./-]{1,100})?")

_OFFLINE: Final = "the hub cannot be reached; go online, or download its config.json by hand and give the path"

_CURES: Final = {
    "LocalEntryNotFoundError": _OFFLINE,
    "OfflineModeIsEnabled": _OFFLINE,
    "RepositoryNotFoundError": "there is no such repository, or it is private: check the name, or log in",
    "GatedRepoError": "the repository is gated: accept its terms on the hub and log in, or give a local config.json",
    "RevisionNotFoundError": "the repository has no such revision",
    "EntryNotFoundError": "the repository has no config.json; give the repository of the original weights",
    "RemoteEntryNotFoundError": "the repository has no config.json; give the repository of the original weights",
    "HFValidationError": "is no name of a repository; write owner/name",
}


def is_hub_id(text: str) -> bool:
    """Return whether a text has the form of a hub repository: ``owner/name``, or ``owner/name@revision``.

    Examples
    --------
    >>> is_hub_id("Qwen/Qwen3-8B"), is_hub_id("Qwen/Qwen3-8B@main"), is_hub_id("./Qwen3-8B/config.json")
    (True, True, False)
    """
    is_file = text.endswith((".json", "/")) or ".." in text
    return bool(_REPOSITORY.fullmatch(text)) and not is_file


def fetch_hub_config(hub_id: str) -> Path:
    """Return the path of a repository's ``config.json`` in the library's cache, with its quantisation file beside it.

    `hub_id`: ``owner/name``, or ``owner/name@revision``. Raises `InputError` if the library is not installed, the hub
    cannot be reached, or it has no such file; with the cure.
    """
    try:
        library = importlib.import_module("huggingface_hub")
    except ImportError as error:
        cure = "install roofcast[hub] to fetch it, or download its config.json and give the path"
        raise InputError("model", f"{hub_id!r} is no file or folder here; {cure}") from error
    name, _, revision = hub_id.partition("@")
    try:
        config = Path(library.hf_hub_download(name, "config.json", revision=revision or None))
        with contextlib.suppress(OSError):  # most repositories have none
            library.hf_hub_download(name, QUANTISATION_FILE, revision=revision or None)
        return config
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        cure = next((_CURES[kind] for kind in kinds if kind in _CURES), "")
        if not cure and not isinstance(error, OSError):
            raise
        raise InputError("model", f"cannot fetch {hub_id!r}: {cure or _OFFLINE}") from error
