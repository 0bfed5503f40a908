"""Conversion of collected support facts into the shipped table: ``python -m builders.support.build --raw DIR``.

`DIR/support_2026_11` holds ``precision.csv`` (engine, architecture, weight format) and ``models.csv`` (engine, family
of models, class of accelerators). ``families.csv`` beside this module says which kinds of models a family means; one
that is blank is no fact of a kind. ``classes.csv`` says which targets a class means. ``added.csv`` has facts from
elsewhere, in the columns of the shipped table. What the shipped campaigns measured and no fact covers ends the table.
"""

import argparse
import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from roofcast.data import catalog
from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.catalog.support_rows import SupportRow, target_of
from roofcast.features.validity.engine_support import hardware_formats, weight_formats

HERE: Final = Path(__file__).parent
FOLDER: Final = "support_2026_11"
READ: Final = "2026-11-27"
"""Day of reading: the date of a page that has none."""

COLUMNS: Final = tuple(SupportRow.model_fields)
STATUS: Final = {"yes": "runs", "emulated": "runs", "partial": "unknown", "no": "does_not_run"}
PLUGINS: Final = ("vllm-tpu", "vllm-gaudi", "vllm-ascend", "vllm-neuron", "vllm-kunlun", "vllm-torchtpu")
"""Plug-ins of vLLM: one engine, each for its own accelerators."""

FORMATS: Final = {"int4_awq": "awq", "int4_gptq": "gptq", "bnb_nf4": "nf4"}
REMOVED: Final = (
    (r"last series with sm_70 is 0\.19", "0.20"),
    (r"since 0\.24 only with the separate", "0.24"),
    (r"since 0\.28 only with the separate", "0.28"),
)
"""First version without what earlier ones had."""

NVIDIA: Final = ("sm70", "sm75", "sm80", "sm86", "sm87", "sm89", "sm90", "sm100", "sm103", "sm120", "sm121")
LIKE: Final = {"sm87": "sm86", "sm103": "sm100", "sm121": "sm120"}
"""Architectures that run what another of the same generation does, where no fact is of their own."""


def build(raw: Path) -> list[SupportRow]:
    """Return the rows of the table."""
    folder = raw / FOLDER
    facts = [*_precisions(_read(folder / "precision.csv")), *_models(_read(folder / "models.csv"))]
    facts = [*_merge(facts), *_read(HERE / "added.csv")]
    rows = [SupportRow.parse(fact) for fact in facts]
    return [*rows, *_measured(rows)]


def _precisions(rows: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    rows = list(rows)
    known = {(row["engine"], row["accelerator_or_architecture"]) for row in rows}
    for row in rows:
        engine, target = row["engine"], row["accelerator_or_architecture"]
        status = "unknown" if "experimental" in row["note"] else STATUS[row["supported"]]
        status = "does_not_run" if "it does not start" in row["note"] else status
        first = next((first for note, first in REMOVED if re.search(note, row["note"])), "")
        if status == "runs" and row["weight_precision"] == "mxfp4" and engine == "vllm":
            first = row["min_version"]
        names = [FORMATS.get(row["weight_precision"], row["weight_precision"])]
        if names == ["fp16"] or (names == ["bf16"] and status == "runs"):
            names.append("fp32")
        targets = [target, *(new for new, old in LIKE.items() if old == target and (engine, new) not in known)]
        yield {
            **_fact(row, row["note"], row["date"]),
            "engine": _engine(engine),
            "first_version": first,
            "targets": " ".join(targets),
            "formats": " ".join(names),
            "status": status,
        }


def _models(rows: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    families = {(row["family"], row["engine"]): row for row in _read(HERE / "families.csv")}
    classes = {row["accelerator_class"]: row["targets"].split() for row in _read(HERE / "classes.csv")}
    groups: dict[tuple[str, str], list[tuple[dict[str, str], list[str]]]] = defaultdict(list)
    for row in rows:
        engine, _, version = row["engine"].partition(" ")
        family = families.get((row["model_family"], engine)) or families[row["model_family"], ""]
        if (family["models"] or family["weight_precisions"]) and not re.search("enough HBM", row["reason"]):
            targets = classes[row["accelerator_class"]]
            fact = {
                **_fact(row, row["reason"], row["date"]),
                "engine": _engine(engine),
                "first_version": version if re.match(r"\d", version) else "",
                "models": family["models"],
                "formats": family["weight_precisions"].replace("any", ""),
                "status": STATUS[row["supported"]],
            }
            if limit := re.search(r"releases below 0\.(\d+)", row["accelerator_class"]):
                fact["last_version"] = f"0.{int(limit[1]) - 1}"
                seen = re.search(r"vLLM (0\.\d+)-", row["reason"])
                fact["first_version"] = seen[1] if seen else ""
            elif last := re.search(r"\(last 0\.(\d+)\)", row["reason"]):
                fact["first_version"] = f"0.{int(last[1]) + 1}"
            elif since := re.search(
                r"(\d\.\d+) (?:or later|with FlashInfer)", row["reason"] + row["accelerator_class"]
            ):
                fact["first_version"] = since[1]
            groups[engine, row["model_family"]].append((fact, targets))
    for members in groups.values():
        stated = {target for _, targets in members for target in targets}
        for fact, targets in members:
            similar = [new for new, old in LIKE.items() if old in targets and new not in stated]
            stated.update(similar)
            yield {**fact, "targets": " ".join([*targets, *similar])}
        yield from _gaps([(fact, [t for t in targets if t in NVIDIA]) for fact, targets in members], stated)


def _gaps(members: list[tuple[dict[str, str], list[str]]], stated: set[str]) -> Iterator[dict[str, str]]:
    bounds = {}
    for status in ("runs", "does_not_run"):
        places = [NVIDIA.index(one) for fact, targets in members for one in targets if fact["status"] == status]
        bounds[status] = (min(places), max(places)) if places else (0, 0)
    (low, high), (first, last) = bounds["runs"], bounds["does_not_run"]
    for index, target in enumerate(NVIDIA if high else ()):
        if target in stated:
            continue
        between = (low, high) if low < index < high else (first, last) if first < index < last < low else ()
        if between:  # what older and newer ones run, or do not run, so do those between
            like = next(fact for fact, targets in members if NVIDIA[between[0]] in targets)
            yield {**like, "targets": target, "reason": f"as {NVIDIA[between[0]]} and {NVIDIA[between[1]]}"}
        elif last:
            reason = "no source tells, and other generations do not run it"
            like = {**members[0][0], "status": "unknown", "evidence": "absence"}
            yield {**like, "targets": target, "reason": reason}


def _fact(row: dict[str, str], reason: str, date: str) -> dict[str, str]:
    source = row["source_url"]
    is_code = "/blob/" in source and not source.endswith(".md")
    date = date if re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", date) else READ
    reason = re.sub(r"[;,]? ?page without a date, read [\d-]+| ?\((and )?the product [^)]*\)", "", reason)
    reason = re.sub(r",? ?\(?(code id|indexed copy, code id) \d+\)?", "", reason).strip("; ") or "table of the source"
    evidence = "code" if is_code else "report" if re.search("/issues/|/pull/", source) else "documentation"
    evidence = "absence" if "absence" in reason else evidence
    return {"reason": reason, "source": source, "date": date, "evidence": evidence, "last_version": "", "models": ""}


def _engine(name: str) -> str:
    return "vllm" if name in PLUGINS else name


def _merge(facts: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    for lists in ("formats", "targets"):
        groups: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for fact in facts:
            rest = tuple((name, fact[name]) for name in sorted(fact) if name != lists)
            groups[rest] |= dict.fromkeys(fact[lists].split())  # type: ignore[index]
        facts = [{**dict(rest), lists: " ".join(parts)} for rest, parts in groups.items()]  # type: ignore[arg-type]
    yield from facts


def _measured(rows: list[SupportRow]) -> Iterator[SupportRow]:
    parts, models = load_catalog().accelerators, load_catalog().models
    names = ["engine", "accelerator", "weight_precision", "model"]
    table = load_campaigns(CAMPAIGNS)[[*names, "date"]].astype(str)
    latest = table[table["engine"] != ""].groupby(names)["date"].max()
    groups: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for key, date in latest.items():
        engine, part, precision, model = map(str, key)  # type: ignore[call-overload]
        target = target_of(parts[part])
        own = hardware_formats(rows, engine, target)
        has_format = precision and model in models
        for name in sorted(weight_formats(engine, precision, models[model], target)) if has_format else ():
            if name not in own:
                groups[engine, target][name] = max(groups[engine, target].get(name, ""), date)
    for (engine, target), formats in sorted(groups.items()):
        yield SupportRow.parse(
            {
                "engine": engine,
                "targets": target,
                "formats": " ".join(formats),
                "status": "runs",
                "reason": "measured",
                "source": "shipped campaigns",
                "date": max(formats.values()) or READ,
                "evidence": "measured",
            }
        )


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _cells(row: SupportRow) -> dict[str, Any]:
    return {name: " ".join(cell) if isinstance(cell, tuple) else cell for name, cell in row}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True)
    rows = build(parser.parse_args().raw)
    with (Path(catalog.__file__).parent / "engine_support.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_cells, rows))
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main()
