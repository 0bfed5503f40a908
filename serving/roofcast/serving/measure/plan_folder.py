"""Folder of a plan: the setup that its reports are of, and the runs that a budget admitted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.serving.measure.plan import PlannedRun

SETUP_FILE: Final = "setup.json"
CHOICE_FILE: Final = "plan.json"


def check_setup(folder: Path, setup: Mapping[str, str]) -> None:
    """Refuse a folder of another setup.

    Raises `InputError` if the folder has reports of another setup, or cannot be read.
    """
    before = _read(folder / SETUP_FILE, "choose another folder") or dict(setup)
    for name in sorted({*before, *setup}):
        if before.get(name) != setup.get(name):
            values = f"{name}={before.get(name, '')!r}, now {setup.get(name, '')!r}"
            raise InputError("out", f"{folder} has runs of another setup ({values}); choose another folder")


def save_setup(folder: Path, setup: Mapping[str, str]) -> None:
    """Write the setup to the folder, which is made; raises as `check_setup`, and if the folder cannot be written."""
    check_setup(folder, setup)
    _write(folder / SETUP_FILE, dict(setup))


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs of a plan that a budget admits, given a stack profile; saved, since the profile grows with each run.

    `stack`: name of the profile; may be empty.
    """

    plan: Sequence[PlannedRun]
    budget: int
    stack: str

    def load(self, folder: Path) -> list[PlannedRun] | None:
        """Return the runs chosen earlier for the same plan, budget and profile, None if there are none.

        Raises `InputError` if the file is damaged.
        """
        saved = _read(folder / CHOICE_FILE, "delete it to choose again")
        by_name = {run.name: run for run in self.plan}
        chosen = saved.pop("chosen", None)
        if saved != self._key() or not isinstance(chosen, list) or not set(chosen) <= set(by_name):
            return None
        return [by_name[name] for name in chosen]

    def save(self, folder: Path, chosen: Sequence[PlannedRun]) -> None:
        """Write the chosen runs to the folder."""
        _write(folder / CHOICE_FILE, {**self._key(), "chosen": [run.name for run in chosen]})

    def _key(self) -> dict[str, object]:
        return {"plan": [run.name for run in self.plan], "budget": self.budget, "stack": self.stack}


def _read(file: Path, cure: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(file.parent, error) from error
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError("out", f"{file} is damaged; {cure}")
    return content


def _write(file: Path, content: Mapping[str, object]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    except OSError as error:
        raise _unusable(file.parent, error) from error


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError("out", f"{folder} cannot be used: {error.strerror or error}")
