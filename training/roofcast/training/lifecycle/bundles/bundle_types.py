"""Type of a bundle in generic code; that of inference where none is named."""

from typing_extensions import TypeVar

from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.bundle_io import Bundle

B = TypeVar("B", bound=Bundle, default=ModelBundle)
