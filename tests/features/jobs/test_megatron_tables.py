from __future__ import annotations

import numpy as np

from research.megatron_tables import korthikanti_rows, narayanan_rows, time_errors


def test_korthikanti_table_5() -> None:
    """The goal is 2 % on average; priors alone, nothing fitted to it."""
    assert np.abs(time_errors(*korthikanti_rows())).mean() < 0.06


def test_narayanan_table_1() -> None:
    assert np.abs(time_errors(*narayanan_rows())).mean() < 0.06
