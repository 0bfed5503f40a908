"""Refusal of unknown and repeated query parameters: a misspelt `dry_run` must not store a file."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from roofcast.data.errors import MAX_PROBLEM, InputError, join_errors, near_misses


async def refuse_unknown_parameters(request: Request) -> None:
    """Check the names of the query parameters against those that the route declares.

    Pages for browsers take any: they are no part of the OpenAPI document.

    Raises `InputError` if a parameter is unknown, or given more than once where the route takes one value; names
    each, up to `MAX_PROBLEM`, and of unknown ones the similar ones and those that the route has.
    """
    route = request.scope.get("route")
    if not (request.url.query and isinstance(route, APIRoute) and route.include_in_schema):
        return
    is_list = dict(_parameters(route.dependant))
    counts = Counter(name for name, _ in request.query_params.multi_items())
    errors = (
        InputError(name, f"is given {n} times; give it once") if name in is_list else _unknown(name, [*is_list])
        for name, n in counts.items()
        if name not in is_list or (n > 1 and not is_list[name])
    )
    if first := [*islice(errors, MAX_PROBLEM)]:
        raise join_errors(first)


def _parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        yield parameter.alias, list in {get_origin(part) for part in (annotation, *get_args(annotation))}
    for inner in dependant.dependencies:
        yield from _parameters(inner)


_MAX_NAME: Final = 60


def _unknown(name: str, known: list[str]) -> InputError:
    near = near_misses(name, known)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    takes = f"the route takes {', '.join(known)}" if known else "the route takes none"
    error = InputError(name[:_MAX_NAME], f"is not a query parameter here; {guess}{takes}")
    error.near = near
    return error
