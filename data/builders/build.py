"""Rebuild shipped campaigns from their published files: ``python -m builders.build --help``."""

import argparse
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from builders.build_result import BuildResult, rejected_file
from builders.campaigns.assembly import assemble
from builders.job_campaigns.assembly import assemble as assemble_jobs
from builders.memory_campaigns.assembly import assemble as assemble_starts
from builders.pinned import download
from builders.recipe import Recipe, load_recipe
from roofcast.data import campaigns, job_campaigns, memory_campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.job_schema import TRAINING_KEY_COLUMNS
from roofcast.data.measurements.memory_schema import START_KEY_COLUMNS
from roofcast.data.measurements.schema import KEY_COLUMNS

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Topic:
    """Campaigns of one measurement table.

    - `package`: Name of the builders' folder, which holds recipes, hooks and the files of rejected rows.
    - `shipped`: Folder of the shipped campaigns.
    - `order`: Sort columns of the rows.
    - `assemble`: Builds a campaign by its recipe from the published files under a folder.
    """

    package: str
    shipped: Path
    order: tuple[str, ...]
    assemble: Callable[[Recipe, Path], BuildResult]

    @property
    def recipes(self) -> dict[str, Path]:
        """Recipe file by campaign."""
        return {file.stem: file for file in sorted((_HERE / self.package).glob("*.toml"))}


TOPICS: Final = (
    Topic("campaigns", Path(campaigns.__file__).parent, tuple(KEY_COLUMNS), assemble),
    Topic("job_campaigns", Path(job_campaigns.__file__).parent, TRAINING_KEY_COLUMNS, assemble_jobs),
    Topic("memory_campaigns", Path(memory_campaigns.__file__).parent, START_KEY_COLUMNS, assemble_starts),
)


def build(topic: Topic, name: str, raw: Path | None) -> BuildResult:
    """Build a campaign from the files under `raw`; download its pinned files if None.

    Raises `SchemaError` if recipe or files are missing or malformed, or the download fails.
    """
    recipe = load_recipe(topic.recipes[name], f"builders.{topic.package}")
    if raw is not None:
        return topic.assemble(recipe, raw)
    with tempfile.TemporaryDirectory() as folder:
        download(recipe, Path(folder))
        return topic.assemble(recipe, Path(folder))


def save(result: BuildResult, folder: Path, rejected_rows: Path, order: Sequence[str]) -> None:
    """Write rows, counts and rejected rows of a campaign. The output is deterministic.

    - `folder`: Folder of the campaign: holds ``rows.csv`` and the counts in ``campaign.toml``.
    - `rejected_rows`: CSV file of the rejected rows.
    - `order`: Sort columns of the rows.
    """
    ordered = result.rows.sort_values(list(order), kind="stable")
    is_blank = ordered.isna().all() | (ordered == "").all()
    _write(ordered.loc[:, ~is_blank].apply(lambda column: column.map(_cell)), folder / "rows.csv")
    rejected = result.rejected.sort_values(["reference", "reason"], kind="stable")
    if len(rejected):
        rejected_rows.parent.mkdir(parents=True, exist_ok=True)
        _write(rejected, rejected_rows)
    else:
        rejected_rows.unlink(missing_ok=True)
    _save_counts(folder / "campaign.toml", result, rejected["reason"])


def _write(table: pd.DataFrame, file: Path) -> None:
    file.write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="\n")


def _save_counts(file: Path, result: BuildResult, reasons: pd.Series) -> None:
    text = file.read_text(encoding="utf-8").partition("\n[rejected]\n")[0]
    for name, count in {"n_read": result.n_read, "n_row": len(result.rows)}.items():
        text = re.sub(rf"^{name} = \d+$", f"{name} = {count}", text, flags=re.MULTILINE)
    if len(reasons):
        text += "\n[rejected]\n" + "".join(f"{reason} = {n}\n" for reason, n in reasons.value_counts().items())
    file.write_text(text, encoding="utf-8", newline="\n")


def _cell(value: float | str) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else repr(float(value)).removesuffix(".0")
    return str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the campaigns named on the command line and write their rows, or compare them."""
    parser = argparse.ArgumentParser(prog="builders.build", description="Build campaigns: python -m builders.build")
    parser.add_argument("campaigns", nargs="*", metavar="NAME", help="campaign names; all by default")
    parser.add_argument("--raw", type=Path, help="folder of the published files; pinned files are downloaded without")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a built file differs")
    options = parser.parse_args(arguments)
    topics = {name: topic for topic in TOPICS for name in topic.recipes}
    if unknown := sorted(set(options.campaigns) - set(topics)):
        parser.error(f"unknown campaign {', '.join(unknown)}; choose from {', '.join(topics)}")
    differing = []
    for name in options.campaigns or topics:
        try:
            result = build(topics[name], name, options.raw)
        except SchemaError as error:
            parser.error(f"{name}: {error}")
        print(f"{name}: {result.n_read} read, {len(result.rejected)} rejected, {len(result.rows)} rows")
        if options.check:
            differing += differences(result, topics[name], name)
        else:
            topic = topics[name]
            save(result, topic.shipped / name, rejected_file(topic.package, name), topic.order)
    if differing:
        parser.exit(1, f"differ from the built files: {', '.join(differing)}\n")


def differences(result: BuildResult, topic: Topic, name: str) -> list[str]:
    """Return the shipped files of a campaign that differ by a byte from those that `save` would write."""
    rejected, shipped = rejected_file(topic.package, name), topic.shipped / name
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "campaign.toml").write_bytes((shipped / "campaign.toml").read_bytes())
        save(result, folder, folder / rejected.name, topic.order)
        pairs = ((shipped / "rows.csv", "rows.csv"), (shipped / "campaign.toml", "campaign.toml"))
        return [
            f"{name}/{file.name}" if file != rejected else f"rejected/{name}.csv"
            for file, built in (*pairs, (rejected, rejected.name))
            if _bytes(file) != _bytes(folder / built)
        ]


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


if __name__ == "__main__":
    main()
