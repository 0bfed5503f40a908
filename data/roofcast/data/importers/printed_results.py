"""Results that benchmark tools print, as the documents that they also save: a table of labels, and one scanner."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.job_logs.run_log import iter_lines
from roofcast.data.importers.json_input import Node, read_text
from roofcast.data.importers.sources import Source

_BLANKS: Final = frozenset({"none", "null", "n/a", "nan", "not"})
"""First words of values that are none, such as ``not set``."""
STATISTICS: Final = ("mean", "median", "average", "p50", "p90", "p95", "p99")
"""Names of statistics in labels."""

_BULLET: Final = " \t-*>|"
_NUMBER: Final = re.compile(
    r"[0-9]{1,3}(?:,[0-9]{3}){1,9}(?:\.[0-9]{1,30})?|[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII
)
_SEPARATOR: Final = re.compile(r",(?![0-9]{3}(?![0-9]))", re.ASCII)
_PREFIX: Final = re.compile(
    r"(?:[\w.-]{1,60}-[0-9]{1,4} {1,20}\| "
    r"|\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,20}(?:Z|[+-][0-9:]{4,5})?\]? )*",
    re.ASCII,
)
"""Prefix of a line by a container (name and bar) or a logger (time)."""


@dataclass(frozen=True)
class Printed:
    """Layout of a printed result: ``label: value``, one or several to a line, in which commas stand between them.

    - `begin`: Text in the first line of a result; the values above it, since the result before, belong to it too.
    - `labels`: By label, in lower case and with single blanks: dotted path of the value in the saved document.
    - `end`: Text with which the line after a result begins; by default the next result ends it.
    - `warmup_end`: Text of the line above the first result that counts, where a warm-up prints results too.
    """

    begin: str
    labels: Mapping[str, str]
    end: str = ""
    warmup_end: str = ""

    def recognises(self, start: bytes) -> bool:
        """Return whether the start of a file holds the first line of a result."""
        return self.begin.encode() in start

    def documents(self, source: Source) -> Iterator[Node]:
        """Yield the results of a text, each as the document that the tool saves, with the line on which it begins.

        A path that a label gives twice keeps its first value.

        Raises `SchemaError` if the file is empty, too large or not UTF-8, a line is too long, or it holds no result.
        """
        text = read_text(source)
        is_warmup = bool(self.warmup_end) and self.warmup_end in text
        document: dict[str, Any] = {}
        begun = n_result = 0
        for line, whole in iter_lines(text, source.name):
            content = whole[_PREFIX.match(whole).end() :]  # type: ignore[union-attr]
            if is_warmup:
                is_warmup = self.warmup_end not in content
                continue
            is_first = self.begin in content
            if begun and (is_first or (self.end and content.startswith(self.end))):
                yield Node(document, "", source.name, begun)
                document, begun = {}, 0
            if is_first:
                begun, n_result = line, n_result + 1
            for label, value in _pairs(content):
                if label in self.labels:
                    _put(document, self.labels[label].split("."), value)
        if not n_result:
            raise SchemaError("", f"holds no result: no line has {self.begin!r}", source.name)
        if begun:
            yield Node(document, "", source.name, begun)


@functools.cache
def printed(tool: str) -> Printed:
    """Return the layout of a tool's printed result, by its name in ``printed_results.toml``."""
    table = dict(fact_table("printed_results")[tool])
    labels = {
        label.replace("{}", name): path.replace("{}", name)
        for label, path in table.pop("labels").items()
        for name in STATISTICS
    }
    return Printed(**table, labels=labels)


def documents_of(source: Source, tools: Sequence[str], read: Callable[[Source], Iterable[Node]]) -> Iterable[Node]:
    """Return the documents of a file: the results that the first fitting tool prints, else what `read` returns."""
    start = source.start()
    layouts = map(printed, tools) if start.lstrip()[:1] != b"{" else ()
    text = next((one for one in layouts if one.recognises(start)), None)
    return text.documents(source) if text else read(source)


def _pairs(content: str) -> Iterator[tuple[str, object]]:
    for part in _SEPARATOR.split(content) if ":" in content else ():
        label, _, rest = part.partition(":")
        value = rest.split(None, 1)
        if value:
            yield " ".join(label.strip(_BULLET).lower().split()), _value_of(value[0])


def _put(document: dict[str, Any], path: list[str], value: object) -> None:
    for part in path[:-1]:
        document = document.setdefault(part, {})
    document.setdefault(path[-1], value)


def _value_of(text: str) -> object:
    if text.lower() in _BLANKS:
        return None
    number = text.removesuffix("%")
    if not _NUMBER.fullmatch(number):
        return text
    value = float(number.replace(",", ""))
    return value / 100 if text.endswith("%") else value
