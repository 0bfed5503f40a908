"""Number and variation of ML.ENERGY's output lengths, from the middles of their histogram's bins."""

from collections.abc import Iterator

import numpy as np

from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with number and variation of their requests."""
    for record in published:
        histogram = record.cells["output_length_distribution"]
        edges, counts = np.array(histogram["bins"]), np.array(histogram["counts"])
        middles = (edges[:-1] + edges[1:]) / 2.0
        mean = np.average(middles, weights=counts)
        deviation = np.sqrt(np.average((middles - mean) ** 2, weights=counts))
        yield record.having(n_request=float(counts.sum()), length_variation=float(deviation / mean))
