"""Dated public configurations of InferenceX, and look-up of the ones that match a measured row."""

import dataclasses
import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from builders.campaigns.silicon.source import SourceRow

GRACE: Final = dt.timedelta(days=1)
"""Tolerance on dates: a configuration runs in its pull request before the history shows it, and again on change."""

_FAMILIES: Final = {
    "dsr1": "deepseek", "gptoss": "gpt-oss", "minimaxm2.5": "minimax", "kimik2.5": "kimi", "qwen3.5": "qwen3.5",
    "glm5": "glm-5",
}  # fmt: skip
_SYSTEMS: Final = {"b200": "b200_sxm", "b300": "b300_sxm", "h100": "h100_sxm", "h200": "h200_sxm"}
_ENGINES: Final = {"trt": "trtllm"}
_PRECISIONS: Final = {"nvfp4": "fp4"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """One line of the history: from `date` on, `key` runs concurrencies `low` to `high` with this image."""

    date: dt.date
    key: str
    image: str
    scenario: tuple[str, ...]
    tp: int
    ep: int
    dp_attention: bool
    low: int
    high: int
    mtp: bool

    @property
    def version(self) -> str:
        """Engine version within the image's tag."""
        tag = self.image.rpartition(":")[2]
        match = re.match(r"v?(\d[\w.]*)", tag)
        return match[1] if match else tag


class History:
    """Configurations by scenario: model family, system, engine, precision and nominal lengths."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        self._settings: dict[tuple[str, ...], list[Setting]] = defaultdict(list)
        for setting in settings:
            self._settings[setting.scenario].append(setting)

    def settings_of_day(self, row: SourceRow) -> list[Setting]:
        """Return the settings of each key for the row's scenario, in their last state on the row's day.

        A row without a date gets every state.
        """
        return self._on(scenario_of(row), row.date)

    def _on(self, scenario: tuple[str, ...], date: dt.date | None) -> list[Setting]:
        settings = self._settings.get(scenario, [])
        if date is None:
            return settings
        known = [s for s in settings if s.date <= date + GRACE]
        last = {s.key: max(t.date for t in known if t.key == s.key) for s in known}
        return [s for s in known if s.date == last[s.key]]

    def matches(self, row: SourceRow, label: tuple[int, int]) -> list[Setting]:
        """Return the settings on the row's day that match its parallelism, concurrency, image and version."""
        return [
            s
            for s in self.settings_of_day(row)
            if (s.tp, s.ep) == label and s.low <= (row.concurrency or 0) <= s.high and _has_image_of(s, row)
        ]

    def points(self, row: SourceRow, label: tuple[int, int], *, mtp: bool) -> set[tuple[str, str, int]]:
        """Return every (input, output, concurrency) run on the row's day with its parallelism, with or without MTP.

        Concurrency doubles from the lowest to the highest of a setting.
        """
        family = scenario_of(row)[:4]
        points = set()
        for scenario in self._settings:
            if scenario[:4] != family:
                continue
            for s in self._on(scenario, row.date):
                if (s.tp, s.ep) == label and s.mtp is mtp:
                    steps = (s.low * 2**k for k in range((s.high // s.low).bit_length()))
                    points |= {(scenario[4], scenario[5], c) for c in steps if c <= s.high}
        return points

    def highest_concurrency(self, row: SourceRow) -> int | None:
        """Return the highest configured concurrency of the row's scenario; None if it is not listed."""
        return max((s.high for s in self._settings.get(scenario_of(row), [])), default=None)

    def version(self, row: SourceRow) -> str:
        """Return the engine version on the row's day if all settings agree, else blank."""
        versions = {s.version for s in self.settings_of_day(row)} if row.date else set()
        return versions.pop() if len(versions) == 1 else ""


def history_of(configurations: Iterable[Mapping[str, str]]) -> History:
    """Return the history of a table of configurations; models without measured rows are skipped."""
    return History([_setting(cells) for cells in configurations if cells["key"].partition("-")[0] in _FAMILIES])


def _setting(record: Mapping[str, str]) -> Setting:
    family, _, system = record["key"].split("-")[:3]
    engine = _ENGINES.get(record["fw"], record["fw"])
    precision = _PRECISIONS.get(record["prec"], record["prec"])
    return Setting(
        date=dt.date.fromisoformat(record["date"]),
        key=record["key"],
        image=record["image"].replace("#", "/"),
        scenario=(_FAMILIES[family], _SYSTEMS[system], engine, precision, record["isl"], record["osl"]),
        tp=int(record["tp"]),
        ep=int(record["ep"]),
        dp_attention=record["dpa"] == "True",
        low=int(record["c0"]),
        high=int(record["c1"]),
        mtp=record["spec"] == "mtp",
    )


def scenario_of(row: SourceRow) -> tuple[str, ...]:
    """Return the scenario of a row, in the history's names."""
    model = row.cells["model_path"].rpartition("/")[2].lower()
    family = next((name for name in _FAMILIES.values() if model.startswith(name)), model)
    return (family, *(row.cells[name] for name in ("system", "backend", "precision", "isl", "osl")))


def _has_image_of(setting: Setting, row: SourceRow) -> bool:
    if row.image:
        return setting.image == row.image
    version = row.cells["backend_version"]
    return not version or setting.version.startswith(version)
