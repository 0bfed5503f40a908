"""Catalogue: look-up of models, accelerators and offers by id and alias."""

import dataclasses
import functools
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Final, Self

from roofcast.data.catalog.catalog_tables import read_aliases, read_rows, read_specs
from roofcast.data.catalog.hardware_names import HardwareIndex, HardwareName, split_count
from roofcast.data.catalog.sheet_units import with_peaks
from roofcast.data.catalog.support_rows import MeasuredStack
from roofcast.data.catalog.typed_names import WordIndex
from roofcast.data.errors import AmbiguousNameError, SchemaError, UnknownNameError
from roofcast.data.precision_names import parse_weights, split_copy_name
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer

HOST_MEMORY_RATIO: Final = 2.0
"""Memory of a host over that of its accelerators: the median over the accelerators of the shipped offers."""


@dataclasses.dataclass(frozen=True)
class Catalog:
    """Models, accelerators and offers by name.

    Names are compared without case, with blanks and underscores as hyphens. The part of a model's name after the
    slash, and an accelerator's name with or without its maker, are names too where they are unique. Any other name
    means the one entry that has its words, see `typed_names`; that of a quantised copy means its model.

    Raises `SchemaError` if a name has two targets, or an alias or an offer refers to an unknown id.

    - `models`, `accelerators`: Specs by id.
    - `model_aliases`, `accelerator_aliases`: Ids by alias.
    - `alias_precisions`: Precision of the weights by model alias, for the aliases of quantised copies.
    - `hardware_names`: Names of machines, instances and parts without a data sheet.
    - `unlisted`: Ids of models that a caller can name and that no answer names unasked.
    - `measured`: Runs of the store, which override the support table.
    """

    models: Mapping[str, ModelSpec]
    accelerators: Mapping[str, AcceleratorSpec]
    offers: tuple[Offer, ...] = ()
    model_aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    accelerator_aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    alias_precisions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hardware_names: tuple[HardwareName, ...] = ()
    unlisted: frozenset[str] = frozenset()
    measured: tuple[MeasuredStack, ...] = ()

    def __post_init__(self) -> None:
        _ = self._model_index, self._accelerator_index  # raise now if names collide
        for offer in self.offers:
            if offer.accelerator not in self.accelerators:
                raise SchemaError(
                    "accelerator", f"{offer.accelerator!r} of offer {offer.id!r} is not in the catalogue"
                )

    def model(self, name: str) -> ModelSpec:
        """Return the model of this name; for that of a quantised copy, with its weight precision.

        Raises `UnknownNameError` if no name or several names match; lists near misses, or what it may mean.
        """
        precision = self._precision_index.get(_key(name))
        copy = split_copy_name(name)
        if not self.knows_model(name) and copy.quantisation and self._means_model(copy.model):
            name, precision = copy.model, copy.precision
        spec = self.models[_find("model", name, self._model_index, self.listed_models, self._model_words)]
        return spec.model_copy(update={"weight_precision": precision}) if precision else spec

    def accelerator(self, name: str) -> AcceleratorSpec:
        """Return the accelerator of this name, or of the instance or the number of accelerators that it names.

        Raises `UnknownNameError` if no name or several names match, or that of a part without a data sheet; lists
        near misses, or what it may mean.

        Examples
        --------
        >>> [load_catalog().accelerator(name).id for name in ("p5.48xlarge", "2x RTX 3090")]
        ['nvidia-h100-sxm-80gb', 'nvidia-rtx-3090-24gb']
        """
        if not self.knows_accelerator(name) and not self._accelerator_words.meaning(name):
            candidates = [*self._hardware.instances(name)] or self._hardware.chips(name)
            if len(candidates) > 1:
                raise AmbiguousNameError("accelerator", name, candidates)
            bare, n = split_count(name)
            if candidates or n:
                return self.accelerator(candidates[0] if candidates else bare)
        index, words = self._accelerator_index, self._accelerator_words
        try:
            return self.accelerators[_find("accelerator", name, index, self.accelerators, words)]
        except AmbiguousNameError:
            raise
        except UnknownNameError:
            if (part := self._hardware.absent(name)) is None:
                raise
            advice = (
                f"{part.text}; the nearest that is known is {' or '.join(part.ids)}, and a file describes another"
            )
            raise UnknownNameError(
                "accelerator", name, advice=f"{advice} (`roofcast accelerators --template`)"
            ) from None

    def remark(self, field: str, name: str) -> str:
        """Return what a known name of a model or accelerator is taken as; blank where it is spelled as the id is.

        Examples
        --------
        >>> load_catalog().remark("accelerator", "4090"), load_catalog().remark("model", "qwen3-8b")
        ("accelerator '4090' is taken as nvidia-rtx-4090-24gb", '')
        """
        is_model = field == "model"
        spec = self.model(name) if is_model else self.accelerator(name)
        own = [spec.id, spec.id.rpartition("/")[2], spec.id.partition("-")[2]]
        if _key(name) in map(_key, own):
            return ""
        words = self._model_words if is_model else self._accelerator_words
        others = [id_ for id_ in words.matches(name) if id_ != spec.id]
        also = f"; it may also mean {', '.join(others[:3])}" if others else ""
        weights = ""
        if isinstance(spec, ModelSpec) and spec.weight_precision != self.models[spec.id].weight_precision:
            copy = parse_weights(split_copy_name(name).quantisation)
            weights = f" with weights in {copy if copy.precision == spec.weight_precision else spec.weight_precision}"
        return f"{field} {name!r} is taken as {spec.id}{weights}{'' if is_model else self._count_of(name)}{also}"

    def _count_of(self, name: str) -> str:
        if self.knows_accelerator(name) or self._accelerator_words.meaning(name):
            return ""
        bare, n = split_count(name)
        sizes = sorted(size for numbers in self._hardware.instances(bare).values() for size in numbers)
        if n:
            return f"; for {n} of them state n_accelerator {' or '.join(str(n * size) for size in sizes or [1])}"
        return f", of which one has {' or '.join(map(str, sizes))}: n_accelerator states it" if sizes else ""

    def host_memory_byte(self, accelerator: str) -> float:
        """Return the memory of a host for each of its accelerators: the median over offers that tell it.

        Without one it is `HOST_MEMORY_RATIO` of the accelerator's; unified memory has none beside it.
        """
        spec = self.accelerators[accelerator]
        if "unified" in spec.memory_type.lower():
            return 0.0
        return self._host_memory.get(accelerator, HOST_MEMORY_RATIO * spec.memory_byte)

    def _means_model(self, name: str) -> bool:
        return self.knows_model(name) or len(self._model_words.meaning(name)) == 1

    def checkpoints(self, model: ModelSpec) -> dict[str, str]:
        """Return repositories of a model's weights in other precisions than its own; its publisher's first.

        Among several of one precision the name that says least beside the model's wins.

        Examples
        --------
        >>> catalog = load_catalog()
        >>> catalog.checkpoints(catalog.models["Qwen/Qwen3-32B"])
        {'fp8': 'Qwen/Qwen3-32B-FP8', 'fp4': 'nvidia/Qwen3-32B-NVFP4'}
        """
        publisher = model.id.partition("/")[0]
        names = [
            name
            for name, precision in self.alias_precisions.items()
            if "/" in name and self.model_aliases[name] == model.id and precision != model.weight_precision
        ]
        names.sort(key=lambda name: (name.partition("/")[0] != publisher, len(name), name))
        checkpoints: dict[str, str] = {}
        for name in names:
            checkpoints.setdefault(self.alias_precisions[name], name)
        return checkpoints

    def knows_model(self, name: str) -> bool:
        """Return whether there is a model of this name; much faster than `model` if there is none."""
        return _key(name) in self._model_index

    def knows_accelerator(self, name: str) -> bool:
        """Return whether there is an accelerator of this name; much faster than `accelerator` if there is none."""
        return _key(name) in self._accelerator_index

    def with_models(self, specs: Iterable[ModelSpec]) -> Self:
        """Return a catalogue with these models added; one of a known id replaces it.

        Raises `SchemaError` if a new id collides with another name.
        """
        return dataclasses.replace(self, models={**self.models, **{spec.id: spec for spec in specs}})

    def with_accelerators(self, specs: Iterable[AcceleratorSpec]) -> Self:
        """Return a catalogue with these accelerators added; one of a known id replaces it.

        Raises `SchemaError` if a new id collides with another name.
        """
        return dataclasses.replace(self, accelerators={**self.accelerators, **{spec.id: spec for spec in specs}})

    def with_offers(self, offers: Iterable[Offer]) -> Self:
        """Return a catalogue with these offers instead of its own.

        Raises `SchemaError` if an offer's accelerator is not in the catalogue.
        """
        return dataclasses.replace(self, offers=tuple(offers))

    @functools.cached_property
    def listed_models(self) -> Mapping[str, ModelSpec]:
        """Models by id, without those that are unlisted."""
        return {id_: spec for id_, spec in self.models.items() if id_ not in self.unlisted}

    @functools.cached_property
    def _host_memory(self) -> Mapping[str, float]:
        host_bytes: dict[str, list[float]] = {}
        for offer in self.offers:
            if offer.memory_byte:
                host_bytes.setdefault(offer.accelerator, []).append(offer.memory_byte / offer.n_accelerator)
        return {name: statistics.median(values) for name, values in host_bytes.items()}

    @functools.cached_property
    def _model_index(self) -> Mapping[str, str]:
        tails = ((name.rpartition("/")[2], target) for name, target in _targets(self.models, self.model_aliases))
        return _index("model", self.models, self.model_aliases, tails)

    @functools.cached_property
    def _model_words(self) -> WordIndex:
        names: dict[str, list[str]] = {id_: [] for id_ in self.listed_models}
        for alias, id_ in self.model_aliases.items():
            if id_ in names and alias not in self.alias_precisions:
                names[id_].append(alias)
        return WordIndex(names, is_numbered=False)

    @functools.cached_property
    def _accelerator_words(self) -> WordIndex:
        names = {id_: [f"{id_} {spec.vendor} {spec.name}"] for id_, spec in self.accelerators.items()}
        for alias, id_ in self.accelerator_aliases.items():
            names[id_].append(alias)
        return WordIndex(names, is_numbered=True)

    @functools.cached_property
    def _hardware(self) -> HardwareIndex:
        return HardwareIndex(self.accelerators, self.hardware_names, self.offers)

    @functools.cached_property
    def _precision_index(self) -> Mapping[str, str]:
        names = (
            (part, p) for alias, p in self.alias_precisions.items() for part in (alias, alias.rpartition("/")[2])
        )
        return {_key(name): precision for name, precision in names}

    @functools.cached_property
    def _accelerator_index(self) -> Mapping[str, str]:
        short = [(i.partition("-")[2], i) for i in self.accelerators]
        named = [(spec.name, i) for i, spec in self.accelerators.items()]
        targets = [*named, *self.accelerator_aliases.items()]
        full = [(f"{self.accelerators[i].vendor} {name}", i) for name, i in targets if i in self.accelerators]
        return _index("accelerator", self.accelerators, self.accelerator_aliases, [*short, *named, *full])


@functools.cache
def load_catalog() -> Catalog:
    """Return the shipped catalogue; cached.

    Raises `SchemaError` if a table breaks its schema or names collide.

    Examples
    --------
    >>> load_catalog().model("llama-3.1-8b").n_param
    8030261248
    >>> load_catalog().accelerator("H100-SXM-80GB").memory_byte / 2**30
    80.0
    """
    folder = resources.files("roofcast.data.catalog")
    return Catalog(
        models=MappingProxyType({spec.id: spec for spec in read_specs(folder / "models.csv", ModelSpec)}),
        accelerators=MappingProxyType(
            {spec.id: spec for spec in read_specs(folder / "accelerators.csv", AcceleratorSpec, with_peaks)}
        ),
        offers=tuple(read_specs(folder / "offers.csv", Offer)),
        model_aliases=MappingProxyType(read_aliases(folder / "model_aliases.csv")),
        accelerator_aliases=MappingProxyType(read_aliases(folder / "accelerator_aliases.csv")),
        alias_precisions=MappingProxyType(read_aliases(folder / "model_aliases.csv", "weight_precision")),
        hardware_names=tuple(HardwareName.parse(row) for row in read_rows(folder / "hardware_names.csv")),
    )


def _key(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().casefold())


def _targets(ids: Iterable[str], aliases: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return [*((i, i) for i in ids), *aliases.items()]


def _index(
    field: str, ids: Mapping[str, object], aliases: Mapping[str, str], weak: Iterable[tuple[str, str]]
) -> Mapping[str, str]:
    index: dict[str, str] = {}
    for name, target in _targets(ids, aliases):
        if target not in ids:
            raise SchemaError(field, f"alias {name!r} points to {target!r}, which is not in the catalogue")
        if index.setdefault(_key(name), target) != target:
            raise SchemaError(field, f"{name!r} names both {index[_key(name)]!r} and {target!r}")
    candidates = {(_key(name), target) for name, target in weak if name}
    n_target = Counter(name for name, _ in candidates)
    return {**{name: target for name, target in candidates if n_target[name] == 1}, **index}


def _find(field: str, name: str, index: Mapping[str, str], ids: Iterable[str], words: WordIndex) -> str:
    if (id_ := index.get(_key(name))) is not None:
        return id_
    meaning = words.meaning(name)
    if len(meaning) > 1:
        raise AmbiguousNameError(field, name, meaning)
    if not meaning:
        raise UnknownNameError(field, name, ids)
    return meaning[0]
