"""Comparison of an import with the champion, which may fail without failing the import."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from roofcast.data.errors import RoofcastError
from roofcast.serving.abandonment import AbandonedError

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added

Report = TypeVar("Report")

logger = logging.getLogger(__name__)


def compare_if_possible(added: Added, compare: Callable[[str], Report]) -> Report | None:
    """Return what `compare` reports of the id of an import; None if it claims no row or cannot be compared.

    The rows are stored already, so the reason is logged, and no error escapes but `AbandonedError`.
    """
    if not added.n_new + added.n_claimed:
        return None
    try:
        return compare(added.import_id)
    except RoofcastError as error:
        logger.warning("import not compared with the predictor, import_id=%s: %s", added.import_id, error)
    except AbandonedError:
        raise
    except Exception:
        logger.exception("import not compared with the predictor, import_id=%s", added.import_id)
    return None
