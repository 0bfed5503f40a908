"""What `roofcast scoreboard` runs: protocols, their files, and the rows that it prints."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.page import write_page
from judge.protocols.llm_pilot.p1_p2_predictions import LlmPilotPredictor
from judge.scoreboard import Progress, figure_rows, run_scoreboard

__all__ = ["evaluate", "figure_rows"]


def evaluate(
    protocols: Sequence[str],
    progress: Progress,
    *,
    day: str,
    json_file: Path | None = None,
    dump: Path | None = None,
    docs: Path | None = None,
) -> dict[str, Any]:
    """Run the protocols, write the files that are asked for, and return the figures by protocol.

    Raises `UnknownNameError` if a protocol is unknown.
    """
    predictor = LlmPilotPredictor() if {"P1", "P2"} & set(protocols) else None
    board = run_scoreboard(
        protocols, predictor, progress=progress, rule_llm_pilot=predictor.rule if predictor else None
    )
    if json_file:
        json_file.write_text(board.to_json() + "\n", encoding="utf-8")
    if dump:
        board.dump(dump)
    if docs:
        write_page(board, docs, day)
    figures: dict[str, Any] = json.loads(board.to_json())
    return figures
