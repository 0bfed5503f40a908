import pandas as pd

from research.shipped_rows import sample_evenly


def test_a_sample_has_at_most_n_rows_of_each_combination() -> None:
    rows = pd.DataFrame({"campaign": list("aaaab"), "model": list("xxxyx")})
    index = sample_evenly(rows, ["campaign", "model"], 2)
    assert len(index) == 4
    assert {3, 4} < set(index)
    assert list(index) == sorted(index)
    assert rows.loc[index].value_counts().max() == 2
