"""Rules that mark rows of `silicon_sample.csv` as faulty, by ids, versions and public configurations only."""

from collections.abc import Sequence
from typing import Final

from builders.campaigns.silicon.geometry import NODE, label_of
from builders.campaigns.silicon.history import History
from builders.campaigns.silicon.source import SourceRow

_LAB_FAULTS: Final = {
    "b200_sxm/trtllm/1.3.0rc1/nvidia_DeepSeek-R1-NVFP4.csv": "release_candidate",
    "gb200/trtllm/1.2.0rc6.post1/qwen3_32b.csv": "no_concurrency",
}

_ORDER: Final = ("dump", "2026-03-25.csv", "2026-04-06.csv", "gap", "lab")


def fault_of(row: SourceRow, history: History) -> str:
    """Return the name of the rule that an aggregated row breaks; empty if none.

    Examples
    --------
    >>> source = "source_file=x.csv"
    >>> row = SourceRow(1, "lab", {"mode": "agg", "attention_dp_size": "0", "silicon_data_source": source})
    >>> fault_of(row, History([]))
    'placeholder_zero'
    """
    if row.is_disaggregated:
        return ""
    if row.is_inferencex:
        if label_of(row)[0] > NODE:
            return "disaggregated_total"
        highest = history.highest_concurrency(row)
        is_beyond = highest is not None and (row.concurrency or 0) > highest
        return "never_configured" if is_beyond and row.origin != "2026-03-25.csv" else ""
    if row.cells["attention_dp_size"] == "0":
        return "placeholder_zero"
    source = row.cells["silicon_data_source"]
    return next((fault for file, fault in _LAB_FAULTS.items() if f"/{file};" in source), "")


def originals_of(rows: Sequence[SourceRow]) -> dict[int, int]:
    """Map each row number to the row that represents its measurement; to itself unless it is a copy.

    Copies are represented by the most complete source: the database dump first, then the tables by date.
    """
    best: dict[tuple[str, ...], SourceRow] = {}
    for row in sorted(rows, key=lambda row: (_ORDER.index(row.origin), row.number)):
        best.setdefault(row.measurement, row)
    return {row.number: best[row.measurement].number for row in rows}
