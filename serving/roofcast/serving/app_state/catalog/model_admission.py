"""Models that users register with a ``config.json``: lookup by name, and catalogues that include them."""

from __future__ import annotations

import dataclasses
import logging
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.model_config.huggingface import model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec

if TYPE_CHECKING:
    from roofcast.data.store.registered_models import RegisteredModels

logger = logging.getLogger(__name__)

Config = Mapping[str, Any]
"""Content of a ``config.json``."""


def find_model(catalog: Catalog, name: str) -> ModelSpec | None:
    """Return the model of exactly this name, or None if there is none."""
    return catalog.model(name) if catalog.knows_model(name) else None


def with_registered(
    catalog: Catalog, registered: Iterable[ModelSpec], unlisted: frozenset[str] = frozenset()
) -> Catalog:
    """Return the catalogue with the models registered in a store; models of the catalogue take precedence.

    `unlisted`: ids of those of API keys whose rows are apart.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> shipped = load_catalog().model("llama-3.1-8b")
    >>> mine = shipped.model_copy(update={"id": "my-8b"})
    >>> catalog = with_registered(load_catalog(), [mine, shipped.model_copy(update={"n_layer": 1})])
    >>> catalog.model("my-8b").n_layer, catalog.model("llama-3.1-8b").n_layer
    (32, 32)
    """
    free = [spec for spec in registered if find_model(catalog, spec.id) is None]
    if unlisted:
        catalog = dataclasses.replace(catalog, unlisted=unlisted.intersection(spec.id for spec in free))
    try:
        return catalog.with_models(free)
    except SchemaError as error:
        logger.warning("models whose names collide are left out: %s", error)
    for spec in free:
        if find_model(catalog, spec.id) is None:
            catalog = catalog.with_models([spec])
    return catalog


def build_model(name: str, config: Config, catalog: Catalog) -> ModelSpec:
    """Return the model of a ``config.json``, in the lineage of the catalogue's models of the same shape.

    Raises `InputError` if the configuration is not a language model's.
    """
    return with_known_lineage(model_from_config(config, name), catalog)


def with_configs(
    catalog: Catalog, configs: Iterable[tuple[str, Config]]
) -> tuple[Catalog, list[tuple[ModelSpec, Config]]]:
    """Return the catalogue with the models of named configurations, and those models that are new to it.

    Raises `InputError` if a configuration is not a language model's, or another model has its name.
    """
    new = []
    for name, config in configs:
        spec = build_model(name, config, catalog)
        known = find_model(catalog, name)
        if known is None:
            check_spelling(name)
            catalog = catalog.with_models([spec])
            new.append((spec, config))
        elif known != spec.model_copy(update={"lineage": known.lineage, "fold_group": known.fold_group}):
            raise InputError("models", f"the name {name!r} is taken; {_cure(known)}")
    return catalog, new


def check_spelling(name: str) -> None:
    r"""Refuse a new name with characters that look like ASCII letters: it may be taken for a name of the catalogue.

    These are letters with case of other alphabets and with accents, combining and invisible characters, Lisu letters,
    and variants of other characters (NFKC). Scripts without case, such as Chinese, resemble no ASCII letter.

    Raises `InputError` if there is one; names it.

    References
    ----------
    Unicode Technical Standard #39, "Unicode security mechanisms".

    Examples
    --------
    >>> check_spelling("qwen-千问")
    >>> check_spelling("llam\u00e1")
    Traceback (most recent call last):
    roofcast.data.errors.InputError: models: 'llamá' has LATIN SMALL LETTER A WITH ACUTE; use an ASCII letter
    """
    for character in name:
        title = unicodedata.name(character, "an unnamed character")
        is_variant = unicodedata.normalize("NFKC", character) != character
        is_letter = character.lower() != character.upper() or title.startswith("LISU LETTER")
        is_hidden = unicodedata.category(character) in {"Cf", "Mn", "Me"}
        if not character.isascii() and (is_variant or is_letter or is_hidden):
            raise InputError("models", f"{name!r} has {title}; use an ASCII letter")


def check_model_limit(models: RegisteredModels, limit: int, n_new: int, uploader: str = "") -> None:
    """Refuse new models beyond a limit.

    `uploader`: API key, which registers at most half of them; blank for an operator. Raises `InputError` if too many
    models would be registered.
    """
    if n_new and len(models.load()) + n_new > limit:
        cure = "use registered ones, remove some, or raise ROOFCAST_MAX_REGISTERED_MODEL"
        raise InputError("models", f"at most {limit} models can be registered; {cure}")
    if n_new and uploader and models.count_of(uploader) + n_new > limit // 2:
        cure = "use registered ones, remove some, or let an operator register them"
        raise InputError("models", f"at most {limit // 2} models can be registered by one key; {cure}")


def _cure(known: ModelSpec) -> str:
    from roofcast.data.job_campaigns import job_catalog  # noqa: PLC0415  (a list of models needs no pandas)

    if known.id in job_catalog().models:
        return "leave the config out to use the catalogue's model, or choose another name"
    return "it is registered with another config; choose another name"
