"""Fit the kernel parameters and write coefficients and report: ``python -m research.kernels.fit --help``."""

import argparse
import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from research.kernels.kernel_fit import document, fit_kind
from research.kernels.kind import ROW_PER_CELL
from research.kernels.kinds import COMPUTE_KINDS
from research.kernels.link_kinds import LINK_KINDS
from research.kernels.report import cells, report

ALL_KINDS: Final = (*COMPUTE_KINDS, *LINK_KINDS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit every kind; write coefficients and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, help="folder of the unpacked wheel")
    parser.add_argument(
        "--coefficients", type=Path, default=Path("features/roofcast/features/engine/kernel_coefficients.json")
    )
    parser.add_argument("--report", type=Path, default=Path("docs/KERNELS.md"))
    parser.add_argument("--as-of", default=dt.datetime.now(dt.UTC).date().isoformat(), help="date of the fit")
    options = parser.parse_args(arguments)
    fitted = []
    for kind in ALL_KINDS:
        fitted.append(fit_kind(kind, *kind.rows(options.tables)))
        print(kind.name, len(fitted[-1].errors), *cells(fitted[-1].errors), sep="\t")
    text = json.dumps(document(fitted, options.as_of), indent=1)
    options.coefficients.write_text(text + "\n", encoding="utf-8")
    options.report.write_text(report(fitted, ROW_PER_CELL), encoding="utf-8")


if __name__ == "__main__":
    main()
