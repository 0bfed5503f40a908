"""Number of engines in the containers of deplodock's text files, one published row a file."""

import re
from collections.abc import Iterator
from typing import Final

from builders.published import Record

_SERVICE: Final = re.compile(r"^  (?:vllm|sglang)_\d+:$", re.MULTILINE)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with their number of engines."""
    for record in published:
        yield record.having(n_service=len(_SERVICE.findall(record.cells["@text"])))
