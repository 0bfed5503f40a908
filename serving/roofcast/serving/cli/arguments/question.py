"""One question of a command: its table, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roofcast.serving.cli.arguments.request_check import check_row
from roofcast.serving.cli.context import open_model_catalog
from roofcast.serving.cli.files import read_model
from roofcast.serving.cli.remote import model_and_configs

if TYPE_CHECKING:
    import pandas as pd

    from roofcast.data.catalog import Catalog
    from roofcast.serving.composition import Service


def check_question(question: Mapping[str, Any], server: str = "") -> None:
    """Raise the errors of a question; a service knows names that this process does not."""
    import pandas as pd

    from roofcast.features.columns import ENGINES
    from roofcast.serving.predict.row_checks import check_table

    catalog = open_model_catalog()
    check_row(
        {name: value or "" for name, value in question.items()},
        catalog,
        lambda row: check_table(pd.DataFrame([row], dtype=object), catalog, ENGINES)[1][0],
        server,
    )


def question_table(question: Mapping[str, str], service: Service) -> tuple[pd.DataFrame, Catalog]:
    """Return the question as a table of one row, and the catalogue with its model."""
    import pandas as pd

    from roofcast.serving.app_state.catalog.model_admission import build_model

    catalog = service.catalog
    model = read_model(question["model"], catalog)
    if not isinstance(model, str):
        spec = build_model(model["name"], model["config"], catalog)
        # the name of a configuration has precedence over the same name in the catalogue
        catalog = replace(catalog, models={spec.id: spec}, model_aliases={}, alias_precisions={})
        model = spec.id
    given = {name: value for name, value in question.items() if value} | {"model": model}
    return pd.DataFrame([given], dtype=object), catalog


def question_row(question: Mapping[str, str], server: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the question as a row for a service, and the configurations to send along."""
    name, configs = model_and_configs(question["model"], server)
    return {column: value for column, value in question.items() if value} | {"model": name}, configs
