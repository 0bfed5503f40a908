"""Launch scripts of InferenceX: the rows that each one served, its dates, and its server settings.

Source: the public repository ``SemiAnalysisAI/InferenceX`` (Apache-2.0), the scripts under ``benchmarks/`` and
``perf-changelog.yaml``, which dates their changes. No results were read there.
"""

import csv
import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from builders.columns import arithmetic
from builders.recipe import holds
from roofcast.data.measurements.schema import NUMBER_COLUMNS

Settings = dict[str, str | float]
"""Columns of the measurement table by name."""

_HERE: Final = Path(__file__).parent
_SERVED: Final = frozenset({"model", "systems", "engine", "precisions", "file", "mtp", "since", "until"})
"""Columns of a script that say which rows it served; the others are settings."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """One start of a server: nominal lengths, load, devices, and whether attention is data parallel."""

    n_input: int
    n_output: int
    concurrency: int
    n_device: int
    has_dp: bool


@dataclasses.dataclass(frozen=True)
class Served:
    """What a launch script served, and on which ISO day or month, in the names of ``scripts.csv``."""

    model: str
    system: str
    engine: str
    precision: str
    day: str
    mtp: bool = False

    def settings(self, launch: Launch) -> Settings | None:
        """Return the settings of the script that served a run, by column; None if no script is known.

        A setting is left out where the script leaves it to an engine without a fixed default.

        Examples
        --------
        >>> launch = Launch(1024, 1024, 64, 8, has_dp=False)
        >>> Served("deepseek", "b200", "sglang", "fp4", "2025-11").settings(launch)["max_num_seqs"]
        256.0
        """
        script = next((script for script in SCRIPTS if self._is_by(script)), None)
        if script is None:
            return None
        values = {name: setting_of(name, text, launch) for name, text in script.items() if name not in _SERVED}
        return {name: value for name, value in values.items() if value not in (None, "")}

    def _is_by(self, script: Mapping[str, str]) -> bool:
        is_same_model = (script["model"], script["engine"]) == (self.model, self.engine)
        is_same = is_same_model and self.precision in script["precisions"].split()
        is_mtp = {"yes": True, "no": False}.get(script["mtp"], self.mtp)
        is_valid = self.system in script["systems"].split() and is_mtp == self.mtp
        return is_same and is_valid and script["since"] <= self.day <= (script["until"] or self.day)


def setting_of(column: str, text: str, launch: Launch) -> Any:
    """Return a script's setting: a constant, or what the rule of this name makes of the launch; None if blank."""
    if text in RULES:
        cells = dataclasses.asdict(launch)
        return next((arithmetic(rule["value"], cells) for rule in RULES[text] if holds(rule, cells)), None)
    return float(text) if text and column in NUMBER_COLUMNS else text or None


def _scripts() -> list[dict[str, str]]:
    with (_HERE / "scripts.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


RULES: Final[Mapping[str, Any]] = tomllib.loads((_HERE / "launch_rules.toml").read_text(encoding="utf-8"))
SCRIPTS: Final = _scripts()
"""Scripts with equal settings, for other chips or precisions or at another path, are listed once; blank bounds of
dates and of multi-token prediction admit any."""
