"""Files of the package that are computed from shipped rows, each beside a manifest with fingerprints."""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.specs import Spec
from roofcast.training.lifecycle.bundles.bundle_io import sha256
from roofcast.training.lifecycle.fingerprints import catalog_fingerprint, code_fingerprint, rows_fingerprint

FOLDER: Final = Path(__file__).parents[1] / "shipped"


class Manifest(Spec):
    """Digest of a shipped file, and fingerprints of the data and code that it follows from.

    `layout`: of a bundle; blank for other files.
    """

    sha256: str
    layout: str = ""
    data: str
    catalog: str
    code: str


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file of the package.

    `load_rows` and `load_catalog`: return the shipped rows and the catalogue that it follows from.
    """

    name: str
    command: str
    load_rows: Callable[[], pd.DataFrame]
    load_catalog: Callable[[], Catalog]

    @property
    def file(self) -> Path:
        """Path of the file."""
        return FOLDER / self.name

    @property
    def code(self) -> list[str]:
        """Files and folders of code that it follows from."""
        with Path(__file__).with_name("shipped_code.toml").open("rb") as file:
            paths: list[str] = tomllib.load(file)[self.name]
        return paths

    def read_manifest(self) -> Manifest:
        """Return the stored manifest.

        Raises `OSError`, `ValueError` or `InputError` if there is none, or it is damaged.
        """
        return Manifest.parse(json.loads(self._manifest_file.read_text(encoding="utf-8")))

    def current_manifest(self, layout: str = "") -> Manifest:
        """Return the manifest of the file by the data and code of the source tree."""
        return Manifest(
            sha256=sha256(self.file),
            layout=layout,
            data=rows_fingerprint(self.load_rows()),
            catalog=catalog_fingerprint(self.load_catalog()),
            code=code_fingerprint(self.code),
        )

    def write_manifest(self, layout: str = "") -> Manifest:
        """Store `current_manifest` beside the file and return it."""
        manifest = self.current_manifest(layout)
        self._manifest_file.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return manifest

    @property
    def _manifest_file(self) -> Path:
        return self.file.with_suffix(".json")
