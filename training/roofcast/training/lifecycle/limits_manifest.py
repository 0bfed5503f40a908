"""The shipped limits of the quarantine, with fingerprints of the data and code that they rest on.

``python -m roofcast.training.lifecycle.limits_manifest`` computes and stores both in some seconds; `make predictor`
does so too.
"""

from __future__ import annotations

import json
from typing import Final

import roofcast.data
import roofcast.features
import roofcast.training
from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.specs import Spec
from roofcast.training.lifecycle.bundles.bundle import sha256
from roofcast.training.lifecycle.quarantine import FILE, fit_shipped_limits, write_limits
from roofcast.training.lifecycle.shipped import catalog_fingerprint, code_fingerprint, rows_fingerprint

MANIFEST: Final = FILE.with_suffix(".json")

COMMAND: Final = "python -m roofcast.training.lifecycle.limits_manifest"

CODE: Final = (
    *((roofcast.features, name) for name in ("arrays.py", "columns.py", "descriptors", "engine", "pipeline.py")),
    (roofcast.training, "dataset/stacks.py"),
    (roofcast.training, "dataset/targets.py"),
    (roofcast.training, "lifecycle/quarantine.py"),
    (roofcast.data, "units.py"),
)
"""Files and folders of packages whose code changes the limits."""


class Manifest(Spec):
    """Digest of the file of limits, and fingerprints of the data and code that they rest on."""

    sha256: str
    data: str
    catalog: str
    code: str


def current_manifest() -> Manifest:
    """Return the manifest of the file in the source tree, by today's data and code."""
    return Manifest(
        sha256=sha256(FILE),
        data=rows_fingerprint(load_campaigns(CAMPAIGNS)),
        catalog=catalog_fingerprint(),
        code=code_fingerprint(CODE),
    )


def read_manifest() -> Manifest:
    """Return the manifest beside the file."""
    return Manifest.parse(json.loads(MANIFEST.read_text(encoding="utf-8")))


def store_shipped_limits() -> None:
    """Compute the limits by the shipped campaigns and store them with their manifest in the source tree."""
    write_limits(fit_shipped_limits())
    MANIFEST.write_text(current_manifest().model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    store_shipped_limits()
