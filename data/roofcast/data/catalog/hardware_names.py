"""Names of hardware that are not an accelerator's own: machines, instances of clouds, and parts without a data sheet.

Instances are those of the offers and of ``hardware_names.csv``; `kind` there is ``machine`` (one of several chips),
``instance``, ``announced`` or ``undescribed``, the last two with the nearest parts in their place.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from roofcast.data.catalog.typed_names import words_of
from roofcast.data.specs import Offer

_COUNT: Final = re.compile(
    r"(?P<n>[0-9]{1,3}) ?x ?(?P<of>.*[a-z0-9])|(?P<part>.*[a-z0-9])(?: |(?<=[0-9]))x ?(?P<size>[0-9]{1,3})", re.I
)
_CLOUDS: Final = ("aws", "gcp", "azure")
"""Providers whose instance types begin with the name of a family, as p5.48xlarge does."""

_SIZE: Final = re.compile(r"(-[0-9]+c)?-[0-9]+gb$", re.ASCII)


@dataclass(frozen=True, slots=True)
class HardwareName:
    """Row of ``hardware_names.csv``: `ids` are chips, of whatever memory, of machines, and accelerators of others."""

    name: str
    kind: str
    ids: tuple[str, ...]
    n_accelerator: int
    text: str

    @classmethod
    def parse(cls, row: Mapping[str, str]) -> Self:
        """Return the name of a row of the table."""
        return cls(row["name"], row["kind"], tuple(row["ids"].split()), int(row["n_accelerator"] or 0), row["text"])


def split_count(name: str) -> tuple[str, int]:
    """Return a name without the number of accelerators beside it, and this number; 0 if there is none.

    Examples
    --------
    >>> split_count("8x H100"), split_count("RTX 3090 x2"), split_count("RX 7900 XTX")
    (('H100', 8), ('RTX 3090', 2), ('RX 7900 XTX', 0))
    """
    match = _COUNT.fullmatch(name.strip())
    if match is None:
        return name, 0
    return (match["of"], int(match["n"])) if match["n"] else (match["part"], int(match["size"]))


class HardwareIndex:
    """What names of machines, instances and parts without a data sheet mean among the accelerators with these ids.

    `offers`: Whose instance types are names; those of `_CLOUDS` also of their families.
    """

    def __init__(self, ids: Iterable[str], names: Iterable[HardwareName], offers: Iterable[Offer]) -> None:
        self._ids, self._names = [*ids], [*names]
        self._instances: dict[str, dict[str, set[int]]] = {}
        rows = {
            (_CLOUDS[0], row.name, row.ids[0], row.n_accelerator) for row in self._names if row.kind == "instance"
        }
        sold = {(offer.provider, offer.instance_type, offer.accelerator, offer.n_accelerator) for offer in offers}
        for provider, instance, id_, n in {*rows, *sold}:
            key = _key(instance)
            for name in (key, *_families(key)) if provider in _CLOUDS else (key,):
                self._instances.setdefault(name, {}).setdefault(id_, set()).add(n)

    def instances(self, name: str) -> dict[str, list[int]]:
        """Return the accelerators of an instance type or a family of them, each with the numbers in one."""
        found = self._instances.get(_key(name), {})
        return {id_: sorted(numbers) for id_, numbers in sorted(found.items())}

    def chips(self, name: str) -> list[str]:
        """Return the accelerators that a machine is sold with, the largest of each chip first; none if it is none."""
        words = words_of(name)
        for row in self._names:
            name_words = words_of(row.name)
            if row.kind == "machine" and name_words <= words:
                chips = [self._memories(chip) for chip in row.ids]
                narrowed = [[i for i in ids if words_of(i) & (words - name_words)] for ids in chips]
                chips = narrowed if any(narrowed) else chips
                return [ids[-1] for ids in chips if ids] + [id_ for ids in chips for id_ in reversed(ids[:-1])]
        return []

    def _memories(self, chip: str) -> list[str]:
        return sorted((i for i in self._ids if i == chip or _SIZE.sub("", i) == chip), key=_gb)

    def absent(self, name: str) -> HardwareName | None:
        """Return the part without a data sheet that a name means; None if it means none."""
        words = words_of(name)
        rows = (row for row in self._names if row.text and words_of(row.name) <= words)
        return max(rows, key=lambda row: len(words_of(row.name)), default=None)


def _gb(id_: str) -> int:
    return int(re.sub(r"\D", "", id_.rpartition("-")[2]) or 0)


def _key(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().casefold()).removeprefix("standard-")


def _families(key: str) -> list[str]:
    cuts = (key[: match.start()] for match in re.finditer(r"[.-]", key))
    return [
        cut
        for cut in cuts
        if re.search("[0-9]", cut) and re.search("[a-z]", cut) and not re.fullmatch("[0-9]+x", cut)
    ]
