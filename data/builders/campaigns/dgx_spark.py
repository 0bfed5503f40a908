"""Joins llama-benchy's rows in pairs, and both kinds of rows to the speculation of their server's arguments."""

import json
import re
from collections.abc import Iterator
from typing import Any

from builders.columns import is_blank
from builders.figures import number_of
from builders.published import Cells, Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each result file, and for each pair of prompt's and tokens' speed."""
    speculations: dict[str, dict[str, Any]] = {}
    prompt: Record | None = None
    for record in published:
        cells = record.cells
        folder, _, name = cells["_path"].rpartition("/")
        if "phase" not in cells:
            speculations[folder] = _speculation(cells["meta.server_config.extra_vllm_args"])
            yield Record(cells["_path"], {**cells, **_served(cells, name), **speculations[folder]})
        elif cells["phase"] == "pp":
            if prompt is not None:
                yield _named(prompt).rejected("no_partner", "a prompt's speed without that of its tokens")
            prompt = record
        elif prompt is None or (prompt.cells["_path"], prompt.cells["conc"]) != (cells["_path"], cells["conc"]):
            yield record.rejected("no_partner", "speed of tokens without that of their prompt")
        else:
            first = prompt.cells
            n_input = number_of(first["n_tok"]) + (0.0 if is_blank(first["depth"]) else number_of(first["depth"]))
            more = {"model": first["hf_model"], "name": name.removesuffix(".md"), "n_input": n_input, "prompt": first}
            yield Record(_named(prompt).reference, {**cells, **more, **speculations.get(folder, {})}, n_published=2)
            prompt = None


def _named(prompt: Record) -> Record:
    return Record(f"{prompt.cells['_path']} {prompt.cells['test']}", prompt.cells)


def _served(cells: Cells, name: str) -> dict[str, Any]:
    limit = cells["max_concurrency"]
    cap = f"; at most {number_of(limit):g} requests in flight" if limit else ""
    n_request = number_of(cells["completed"]) + number_of(cells["failed"])
    return {"model": cells["model_id"], "name": name.removesuffix(".json"), "cap": cap, "n_request": n_request}


def _speculation(arguments: str) -> dict[str, Any]:
    match = re.search(r"--speculative[-_]config\s+(\{.*?\})", arguments)
    return json.loads(match[1]) if match else {}
