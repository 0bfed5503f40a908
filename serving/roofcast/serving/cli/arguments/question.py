"""One question of a command: its table, its errors, and what its answer is conditioned on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from roofcast.serving.cli.arguments.request_check import Problems, check_calibration, check_level, check_row
from roofcast.serving.cli.context import note_stack, open_model_catalog
from roofcast.serving.cli.files import read_model, read_references_table
from roofcast.serving.cli.remote import model_and_configs
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR, Operator

if TYPE_CHECKING:
    import pandas as pd

    from roofcast.data.catalog import Catalog
    from roofcast.serving.app_state.champion_loader import LoadedModel
    from roofcast.serving.composition import Service
    from roofcast.serving.csv_table import CsvTable
    from roofcast.training.learner.predictor import CalibrationPoints
    from roofcast.training.lifecycle.bundles.bundle import ModelBundle


@dataclass(frozen=True, slots=True)
class Calibration:
    """Own runs or the stack that answers are conditioned on, whose stack they are about, and the intervals' level.

    `file`: of the references. `server`: service that answers; blank for the command's own predictor.
    """

    stack: str = ""
    server: str = ""
    level: float = DEFAULT_LEVEL
    operator: Operator = DEFAULT_OPERATOR
    file: Path | None = None
    references: CsvTable | None = None

    def check(self, problems: Problems) -> Self:
        """Return it with its references read; add its problems to those of the command."""
        checked = self
        with problems:
            checked = replace(self, references=read_references_table(self.file) if self.file else None)
        with problems:
            check_level(self.level)
        check_calibration(problems, checked.references, self.file, self.stack, self.server)
        return checked

    def choose(
        self, service: Service, catalog: Catalog, active: LoadedModel
    ) -> tuple[ModelBundle, CalibrationPoints | None]:
        """Return the bundle that answers and the points that it is conditioned on; print the stack."""
        known = None
        if self.references and self.file:
            from roofcast.serving.predict.reference_rows import read_references

            table, predictor = self.references, active.bundle.predictor
            known = read_references(table.frame(), catalog, predictor, self.file.name, table.lines)
        bundle, points, used = service.stacks.choose(catalog, active, "", self.stack, known, operator=self.operator)
        note_stack(used)
        return bundle, points

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a request to a service."""
        given = {"stack": self.stack, "operator": self.operator, "level": self.level}
        references = self.references.records() if self.references else []
        return {"references": references} | {name: value for name, value in given.items() if value}


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

    from roofcast.serving.app_state.catalog.live_catalog import build_model

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
