"""Result of building a campaign: validated rows, rejected rows and counts."""

from dataclasses import dataclass, field

import pandas as pd

from builders.rejected_rows import no_rejected_rows


@dataclass(frozen=True)
class BuildResult:
    """Campaign built from its published files.

    - `rows`: Validated measurements.
    - `n_read`: Number of published rows; one published row may give several measurements, one per statistic.
    - `rejected`: Published rows that became no measurement, with columns `REJECTED_COLUMNS`. Every published row is
      either in `rows` or here.
    """

    rows: pd.DataFrame
    n_read: int
    rejected: pd.DataFrame = field(default_factory=no_rejected_rows)
