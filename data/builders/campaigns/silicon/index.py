"""Index of the rows of `silicon_sample.csv`: ``python -m builders.campaigns.silicon.index --raw DIR``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from builders.campaigns.silicon.campaign import resolve_rows
from builders.recipe import load_recipe
from judge.peers.silicon_peers import FOLDER, INDEX_COLUMNS


def build_index(root: Path) -> pd.DataFrame:
    """Return one line per published row, with the columns `INDEX_COLUMNS`.

    Returns
    -------
    shape (n_row, 7)
        `measured_in` is the `row` that holds the measurement in the campaign, `mtp` is yes, no or unsure, `fault` is
        the rule that marks it as faulty, `set_aside` the reason why it is not a measurement of its own. If
        `set_aside` is ``worker_count_unknown``, the campaign holds no measurement.
    """
    recipe = load_recipe(Path(__file__).parents[1] / "silicon.toml", "builders.campaigns")
    resolved = resolve_rows(recipe.published(root))
    records = [
        (v.row.number, v.row.id, v.row.cells["mode"], v.original, v.mtp, v.fault, v.rejection) for v in resolved
    ]
    return pd.DataFrame(records, columns=list(INDEX_COLUMNS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the index and write it where the judge reads it."""
    parser = argparse.ArgumentParser(prog="builders.campaigns.silicon.index", description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="folder of the published files")
    parser.add_argument("--out", type=Path, default=FOLDER, help="output folder")
    options = parser.parse_args(arguments)
    text = build_index(options.raw).to_csv(index=False, lineterminator="\n")
    (options.out / "rows_index.csv").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
