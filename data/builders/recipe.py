"""Recipe of a campaign: ``NAME.toml`` beside the builders, and the rows that it makes of the published files."""

import importlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from builders.columns import (
    INVERSE,
    KEYS,
    UNITS,
    Names,
    arithmetic,
    as_number,
    fill,
    is_blank,
    optional_cell,
    value_of,
)
from builders.figures import ratio
from builders.published import FORMATS, Cells, FileSet, Record, RejectionError
from roofcast.data.errors import SchemaError
from roofcast.data.specs import STATISTICS

Row = dict[str, Any]
"""Columns of a measurement table by name."""

CONDITIONS: Final = frozenset({"blank", "stated", "is", "is_not", "match", "no_match", "below", "above"})
_CASE: Final = {"shared", "columns", "computed", "outcomes"}


@dataclass(frozen=True)
class Source:
    """``[source]``: where the published files lie.

    - `folder`: Below the folder of all raw files; ``is_beside`` in its place if the files were typed, and are kept
      beside the recipe.
    - `archive`: Address of a gzipped tar file of the pinned revision; empty if the files are an extraction of many
      revisions.
    - `flat`: Whether the slashes of the archive's paths are ``__`` in the folder.
    """

    folder: str
    archive: str = ""
    flat: bool = False


@dataclass(frozen=True)
class Recipe:
    """Rules that make a campaign of its published files; `load_recipe` checks them.

    - `name`: Campaign.
    - `stack`: Stack of rows that name none.
    - `hooks`: Module with `records` or `rows`, or both, see ``data/builders/README.md``; None if rules suffice.
    - `spread`: Regular expression (`columns`) of source columns that hold a run each; its groups, ``@column`` and
      ``@value`` become cells. `reference` is the entry of the suffix.
    - `parse`: Regular expressions by source column or template; the named groups that they find become cells.
    - `cells`: Entries of further cells, which hooks' records, rules and columns have; a blank one is an empty text.
    - `alike`: Cells (`of`) that runs of one configuration share, and those (`by`) that order them; runs for which its
      conditions do not hold do not count. Each run has ``@n_alike`` then, and ``@later``, the reference of the last
      run if it is another.
    - `same`: Columns that the source names as we do; ``*`` in job campaigns for all.
    - `computed`: Arithmetic over cells and columns, for a column that is not stated; see `arithmetic`.
    - `is_printed`, `has_headings`, `supersedes`: Job campaigns: whether figures are printed with few digits, whether
      headings name columns, and whether a later release supersedes a much slower one.
    """

    name: str
    source: Source
    files: tuple[FileSet, ...] = ()
    stack: str = ""
    hooks: Any = None
    reference: Any = ("{@file}:{@line}", "@file")
    spread: Mapping[str, Any] = field(default_factory=dict)
    parse: Mapping[str, Any] = field(default_factory=dict)
    is_printed: bool = True
    has_headings: bool = False
    supersedes: bool = False
    cells: Mapping[str, Any] = field(default_factory=dict)
    alike: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[str, ...] = ()
    shared: Row = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Names = field(default_factory=dict)
    reject: tuple[Mapping[str, Any], ...] = ()
    case: tuple[Mapping[str, Any], ...] = ()

    def records(self, root: Path) -> Iterator[Record]:
        """Yield the published rows of the files under `root`, changed by the hook `records`."""
        transform: Callable[[Iterator[Record]], Iterable[Record]] = getattr(self.hooks, "records", iter)
        changed = transform(self.published(root))
        complete = (r if r.rejection else r.having(**self._further(r.cells)) for r in changed)
        return self._compared([*complete]) if self.alike else complete

    def published(self, root: Path) -> Iterator[Record]:
        """Yield the published rows of the files under `root`."""
        folder = root / self.source.folder
        for files in self.files:
            for cells in files.cells(folder):
                reference = str(value_of(self.reference, cells, self.names))
                yield from map(self._parsed, self._spread(Record(reference, cells)))

    def _further(self, cells: Cells) -> Row:
        further: Row = {}
        for name, entry in self.cells.items():
            value = value_of(entry, {**cells, **further}, self.names)
            further[name] = "" if is_blank(value) else value
        return further

    def _compared(self, runs: list[Record]) -> Iterator[Record]:
        alike: dict[tuple[str, ...], list[Record]] = {}
        for run in sorted(
            runs, key=lambda run: [_ordinal(optional_cell(run.cells, n)) for n in self.alike.get("by", ())]
        ):
            if holds(self.alike, run.cells):
                alike.setdefault(self._configuration(run), []).append(run)
        for run in runs:
            known = alike.get(self._configuration(run), [run])
            later = known[-1].reference if known[-1].reference != run.reference else ""
            yield run if run.rejection else run.having(**{"@n_alike": len(known), "@later": later})

    def _configuration(self, run: Record) -> tuple[str, ...]:
        return tuple(str(optional_cell(run.cells, name)) for name in self.alike["of"])

    def _spread(self, record: Record) -> Iterator[Record]:
        matches = {name: re.search(self.spread["columns"], name) for name in record.columns if self.spread}
        found = {name: match for name, match in matches.items() if match}
        for i_run, (name, match) in enumerate(found.items()):
            cells = {**record.cells, **match.groupdict(""), "@column": name, "@value": record.cells[name]}
            suffix = value_of(self.spread.get("reference", ":{@column}"), cells, self.names, is_loose=True) or ""
            n_published = 0 if i_run and "@page" in cells else 1  # a row of a page counts once
            yield Record(f"{record.reference}{suffix}", cells, n_published)
        if not found:
            yield record

    def _parsed(self, record: Record) -> Record:
        for column, patterns in self.parse.items():
            text = str(value_of(column, record.cells, self.names, is_loose=True) or "")
            for found in filter(None, (re.search(pattern, text) for pattern in _listed(patterns))):
                record = record.having(**{name: text for name, text in found.groupdict().items() if text})
        return record


SECTIONS: Final = frozenset(part.name for part in fields(Recipe)) - {"name"} | {"base"}
_SOURCE: Final = frozenset(part.name for part in fields(Source)) | {"is_beside"}
_FILES: Final = frozenset(part.name for part in fields(FileSet)) - {"globs"} | {"glob"}


def _ordinal(cell: Any) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


class RowMaker:
    """Makes rows of a recipe's records, one record after the other: rules on repeats remember the records before.

    `numbers`: number columns of the measurement table. `read_headings`: cells that follow from the headings of a
    published row, in a loose table: its rows lack columns, and cells without a number are blank.
    """

    def __init__(
        self, recipe: Recipe, numbers: Collection[str], read_headings: Callable[[Cells], Row] | None = None
    ) -> None:
        self._recipe = recipe
        self._is_loose = read_headings is not None
        self._read_headings = read_headings if recipe.has_headings else None
        self._numbers = frozenset(numbers)
        self._seen: set[tuple[object, ...]] = set()

    def rows(self, record: Record) -> list[Row]:
        """Return the rows of a published row: its columns, with what the hook `rows` adds or, if None, the outcomes.

        Raises `RejectionError` if a rule or a hook rejects it; `SchemaError` if a cell is missing or malformed.
        """
        recipe, cells = self._recipe, record.cells
        if record.rejection is not None:
            raise RejectionError(*record.rejection)
        for rule in recipe.reject:
            if self._is_rejected(rule, cells):
                raise RejectionError(rule["reason"], fill(rule["detail"], cells, is_loose=self._is_loose))
        headings = self._read_headings(record.columns) if self._read_headings else {}
        columns = {**dict(zip(recipe.same, recipe.same, strict=True)), **recipe.columns}
        common, outcomes = self._part({**recipe.shared, **headings}, columns, cells), dict(recipe.outcomes)
        for case in recipe.case:
            if holds(case, {**common, **cells}):
                common |= self._part(case.get("shared", {}), case.get("columns", {}), cells)
                common |= self._computed(case.get("computed", {}), common, cells)
                for name, entries in case.get("outcomes", {}).items():
                    outcomes[name] = {**outcomes.get(name, {}), **entries}
        common = {
            name: value
            for name, value in (self._computed(recipe.computed, common, cells) | common).items()
            if not name.startswith("@")
        }
        add: Callable[[Cells, Row], Iterable[Row] | None] | None = getattr(recipe.hooks, "rows", None)
        added = None if add is None else add(cells, common)
        if added is not None:
            return [{**common, **row} for row in added]
        return self._by_statistic(common, outcomes, cells) if outcomes else [common]

    def _part(self, shared: Mapping[str, Any], columns: Mapping[str, Any], cells: Cells) -> Row:
        return {**shared} | {
            name: value
            for name, spec in columns.items()
            if not is_blank(value := self._typed(name, self._value(spec, cells)))
        }

    def _value(self, spec: object, cells: Cells) -> Any:
        return value_of(spec, cells, self._recipe.names, is_loose=self._is_loose)

    def _computed(self, expressions: Mapping[str, str], row: Row, cells: Cells) -> Row:
        result: Row = {}
        for name, text in expressions.items():
            if (value := arithmetic(text, {**cells, **result, **row})) is not None:
                result[name] = value
        return result

    def _typed(self, name: str, value: Any) -> Any:
        if name in self._numbers:
            if self._is_loose and name.endswith("_ratio"):
                return ratio(str(value))
            return as_number(value, is_loose=self._is_loose)
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    def _by_statistic(self, common: Row, outcomes: Mapping[str, Mapping[str, Any]], cells: Cells) -> list[Row]:
        titles = self._recipe.names.get("statistic") or {name: name for name in STATISTICS}
        rows = []
        for statistic in STATISTICS:
            entries = dict(outcomes.get(statistic, {}))
            if statistic in titles:
                each = outcomes.get("each", {}).items()
                entries = {name: _with_statistic(spec, titles[statistic]) for name, spec in each} | entries
            if row := self._part({}, entries, cells):
                rows.append({**common, "statistic": statistic, **row})
        return rows

    def _is_rejected(self, rule: Mapping[str, Any], cells: Cells) -> bool:
        if not holds(rule, cells):
            return False
        if "repeats" not in rule:
            return True
        key = (rule["reason"], *(str(optional_cell(cells, name)) for name in rule["repeats"]))
        n_seen = len(self._seen)
        self._seen.add(key)
        return len(self._seen) == n_seen


def _with_statistic(spec: Any, title: str) -> Any:
    if isinstance(spec, Mapping):
        return {**spec, "from": _with_statistic(spec["from"], title)}
    if isinstance(spec, list):
        return [_with_statistic(part, title) for part in spec]
    return str(spec).replace("{statistic}", title)


def holds(rule: Mapping[str, Any], cells: Cells) -> bool:
    """Return whether all conditions of a rule hold for a row; a column that it lacks is blank.

    Examples
    --------
    >>> rule = {"is": {"kind": ["latency", "speed"]}, "no_match": {"gpu": "^MI"}}
    >>> holds(rule, {"kind": "speed", "gpu": "A100"}), holds(rule, {"kind": "speed", "gpu": "MI300X"})
    (True, False)
    """
    tests: Mapping[str, Callable[[Any, Any], bool]] = {
        "is": lambda value, wanted: value in wanted if isinstance(wanted, list) else value == wanted,
        "is_not": lambda value, wanted: value not in wanted if isinstance(wanted, list) else value != wanted,
        "match": lambda value, wanted: re.search(wanted, str(value)) is not None,
        "no_match": lambda value, wanted: re.search(wanted, str(value)) is None,
        "below": lambda value, wanted: as_number(value) < wanted,
        "above": lambda value, wanted: as_number(value) > wanted,
    }
    blank = all(is_blank(optional_cell(cells, name)) for name in _listed(rule.get("blank", [])))
    stated = all(not is_blank(optional_cell(cells, name)) for name in _listed(rule.get("stated", [])))
    return blank and stated and all(
        test(optional_cell(cells, name), wanted)
        for key, test in tests.items()
        for name, wanted in rule.get(key, {}).items()
    )  # fmt: skip


def _listed(value: object) -> list[str]:
    return value if isinstance(value, list) else [str(value)]


def load_recipe(file: Path, package: str) -> Recipe:
    """Read and check a recipe, with the sections of its base; its hooks are a module of `package`.

    Raises `SchemaError` if it is no TOML, or a section or key is unknown.
    """
    document = _document(file)
    for place, entries in _entries(document):
        for name, spec in entries.items():
            _check_column(f"{place}.{name}", spec, file.name)
    for kind, extra in (("reject", {"reason", "detail", "repeats"}), ("case", _CASE)):
        for rule in document.get(kind, []):
            _check_keys(f"key of [[{kind}]]", rule, CONDITIONS | extra, file.name)
    _check_keys("key of [alike]", document.get("alike", {}), CONDITIONS | {"of", "by"}, file.name)
    source = document.pop("source", {})
    _check_keys("key of [source]", source, _SOURCE, file.name)
    if source.pop("is_beside", False):
        source["folder"] = str(file.parent)
    if "folder" not in source:
        raise SchemaError("source.folder", "must be the folder of the published files below --raw", file.name)
    for files in document.get("files", []):
        if "glob" not in files:
            raise SchemaError("files.glob", "must be a pattern, or a list of patterns, below the folder", file.name)
        _check_keys("key of [[files]]", files, _FILES, file.name)
        if files.get("format") not in FORMATS:
            problem = f"must be one of {', '.join(FORMATS)}, got {files.get('format')!r}"
            raise SchemaError("files.format", problem, file.name)
    hooks = document.pop("hooks", "")
    sets = tuple(_file_set(**files) for files in document.pop("files", []))
    return Recipe(
        file.stem, Source(**source), sets,
        hooks=importlib.import_module(f"{package}.{hooks}") if hooks else None,
        reject=tuple(document.pop("reject", ())), case=tuple(document.pop("case", ())), **document,
    )  # fmt: skip


def _document(file: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SchemaError("", f"must be TOML: {error}", file.name) from error
    _check_keys("section", document, SECTIONS, file.name)
    if "base" not in document:
        return document
    base = _document(file.parent / "bases" / f"{document.pop('base')}.toml")
    for section, own in document.items():
        shared = base.get(section)
        base[section] = {**shared, **own} if isinstance(shared, dict) else [*own, *shared] if shared else own
    return base


def _file_set(glob: str | list[str], **options: Any) -> FileSet:
    lists: dict[str, Any] = {name: tuple(options.pop(name, ())) for name in ("rows", "keys", "columns", "repeated")}
    return FileSet(tuple(_listed(glob)), **lists, **options)


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "cells", document.get("cells", {})
    for part, place in ((document, ""), *((case, "case.") for case in document.get("case", []))):
        yield f"{place}columns", part.get("columns", {})
        for statistic, entries in part.get("outcomes", {}).items():
            yield f"{place}outcomes.{statistic}", entries


def _check_column(place: str, spec: object, file: str) -> None:
    if isinstance(spec, list):
        for part in spec:
            _check_column(place, part, file)
    if isinstance(spec, str | list):
        return
    if not isinstance(spec, dict) or not spec.keys() & {"from", "compute"}:
        problem = "must be a source column, a template, or a table with the key from or compute"
        raise SchemaError(place, problem, file)
    _check_keys(f"key of {place}", spec, KEYS, file)
    if "unit" in spec and spec["unit"] not in (*UNITS, INVERSE):
        raise SchemaError(place, f"unit must be one of {', '.join(UNITS)} or {INVERSE}, got {spec['unit']!r}", file)


def _check_keys(kind: str, entries: Mapping[str, Any], known: Collection[str], file: str) -> None:
    unknown = sorted(set(entries) - set(known))
    if unknown:
        raise SchemaError(unknown[0], f"no such {kind}; choose from {', '.join(sorted(known))}", file)
