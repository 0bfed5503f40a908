"""Fingerprint of the columns and codes that a fitted predictor depends on."""

import hashlib

from roofcast.features.columns import DESCRIPTORS, ENGINES, FEATURES
from roofcast.features.engine.kernels.row_kernels import PRECISIONS, measured_hardware


def fingerprint() -> str:
    """Return a digest of columns and codes; serving refuses a bundle with another fingerprint.

    Examples
    --------
    >>> len(fingerprint())
    16
    """
    columns = [f"{c.name}\t{c.unit}\t{c.sign}" for c in (*DESCRIPTORS, *FEATURES) if not c.is_analytic]
    codes = [*ENGINES, *PRECISIONS, *measured_hardware()[0], *measured_hardware()[1]]
    return hashlib.blake2b("\n".join((*columns, *codes)).encode(), digest_size=8).hexdigest()
