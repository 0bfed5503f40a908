"""Errors of a request whether or not its other fields are valid: names, limits, what a workload lacks."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, get_args

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.prices.regions import resolve_region
from roofcast.data.specs import Pricing
from roofcast.serving.app_state.catalog.user_files import OWNED
from roofcast.serving.recommend.api.request import workload_errors
from roofcast.serving.recommend.demand.presets import find_preset
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.request_fields import unknown_name_error

Check = Callable[[str], object]

NAMED_FIELDS: Final = {"model", "workload", "limits", "constraints"}
"""Fields of a request that have names or limits."""


def request_errors(fields: Mapping[str, Any], catalog: Catalog, engines: Collection[str]) -> list[InputError]:
    """Return all such errors of a request of deployments or of training, in JSON values.

    Values of a wrong type are skipped: the request model refuses them.

    `catalog`: with the offers that the request chooses from. `engines`: known engines.
    """
    workload, constraints = (_mapping(fields.get(name)) for name in ("workload", "constraints"))
    offers, specs = catalog.offers, catalog.accelerators.values()
    known = {
        "vendors": {spec.vendor for spec in specs},
        "providers": {OWNED, *(offer.provider for offer in offers)},
        "pricing": {*get_args(Pricing)},
        "engines": {*engines},
    }
    checks: list[tuple[Check, object]] = [
        (catalog.model, [fields.get("model")]),
        (partial(find_preset, field="workload.preset"), [workload.get("preset")]),
        (parse_limit, fields.get("limits")),
        (catalog.accelerator, constraints.get("accelerators")),
        (partial(check_name, "constraints.engines", known["engines"]), [constraints.get("engine") or None]),
    ]
    regions = {offer.region for offer in offers}
    checks.append((partial(resolve_region, "constraints.regions", known=regions), constraints.get("regions")))
    checks += [(partial(check_name, f"constraints.{name}", known[name]), constraints.get(name)) for name in known]
    errors = [error for check, names in checks for error in _errors(check, names)]
    return [*errors, *(workload_errors(workload, "workload") if workload else ())]


def check_name(field: str, known: Iterable[str], name: str) -> str:
    """Return a name as it is known, whatever its case. Raises `UnknownNameError` if it is not; names the field."""
    by_key = {one.casefold(): one for one in known}
    if name.casefold() not in by_key:
        raise unknown_name_error(field, name, by_key.values())
    return by_key[name.casefold()]


def _errors(check: Check, names: object) -> list[InputError]:
    errors = []
    for name in dict.fromkeys(one for one in names if isinstance(one, str)) if isinstance(names, list) else ():
        try:
            check(name)
        except InputError as error:
            errors.append(error)
    return errors


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
