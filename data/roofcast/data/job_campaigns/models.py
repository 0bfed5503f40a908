"""Models of training benchmarks that are in no catalogue: plain shapes, and models cut to fewer layers."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Final

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.model_config.parameters.parameters import count_parameters, shape_from_spec
from roofcast.data.specs import ModelSpec

FILE: Final = "models.csv"

_VOCABULARIES: Final = {250_000: "", 50_257: "-gpt2"}
_GPT_SOURCE: Final = "https://github.com/bigscience-workshop/bigscience: "


def gpt_id(n_layer: int, hidden_size: int, n_head: int, vocab_size: int) -> str:
    """Return the id of a BigScience shape.

    Examples
    --------
    >>> gpt_id(72, 14336, 64, 250_000)
    'bigscience/gpt-h14336-l72-a64'
    """
    return f"bigscience/gpt-h{hidden_size}-l{n_layer}-a{n_head}{_VOCABULARIES[vocab_size]}"


def gpt_spec(
    n_layer: int, hidden_size: int, n_head: int, vocab_size: int = 250_000, n_position: int = 2048, *, page: str
) -> ModelSpec:
    """Return a GPT of BigScience's benchmarks: MLP width 4h, tied embedding, learned positions.

    Parameters
    ----------
    page
        File of BigScience's repository that states the shape.
    """
    sweep = "bigscience-tr11-sweep" if vocab_size == 250_000 else "bigscience-gpt2-sweep"
    n_param = n_layer * (12 * hidden_size**2 + 13 * hidden_size) + (vocab_size + n_position + 2) * hidden_size
    return ModelSpec(
        id=gpt_id(n_layer, hidden_size, n_head, vocab_size),
        lineage=sweep, fold_group=sweep,
        family="bigscience-GPT", model_type="gpt", n_layer=n_layer, hidden_size=hidden_size,
        intermediate_size=4 * hidden_size, mlp_gated=False, n_head=n_head, n_kv_head=n_head,
        head_dim=max(1, hidden_size // n_head), attention="mha", vocab_size=vocab_size, tie_word_embeddings=True,
        max_context_token=n_position, weight_precision="fp16", n_param=n_param, n_param_active=n_param,
        source=_GPT_SOURCE + page,
        note="plain shape of a benchmark, no checkpoint; parameters by the formula l(12h^2+13h) + (v+s+2)h",
    )  # fmt: skip


def cut_id(model: str, n_layer: int) -> str:
    """Return the id of a model cut to its first layers.

    Examples
    --------
    >>> cut_id("xai-org/grok-1", 8)
    'xai-org/grok-1-cut-to-8-layers'
    """
    return f"{model}-cut-to-{n_layer}-layers"


def cut_spec(spec: ModelSpec, n_layer: int, source: str) -> ModelSpec:
    """Return the model cut to fewer layers, in the fold group of the full model."""
    cut = spec.model_copy(update={"n_layer": n_layer, "n_dense_layer": min(spec.n_dense_layer, n_layer)})
    n_param, n_param_active = count_parameters(shape_from_spec(cut))
    fields = {name: value for name, value in cut.model_dump().items() if not name.startswith("n_param_published")}
    return ModelSpec.parse(
        fields
        | {"id": cut_id(spec.id, n_layer), "n_param": n_param, "n_param_active": n_param_active, "source": source}
        | {"note": f"stand-in for {spec.id} on few accelerators: {n_layer} of its {spec.n_layer} layers"}
    )


def save_models(specs: Iterable[ModelSpec], file: Path) -> None:
    """Write the specs, ordered by id; equal specs give equal bytes."""
    rows = [spec.model_dump(mode="json") for spec in sorted(specs, key=lambda spec: spec.id)]
    names = [name for name in ModelSpec.model_fields if any(row[name] not in {None, "", 0} for row in rows)]
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def load_job_models() -> tuple[ModelSpec, ...]:
    """Return the models of the training campaigns that are not in the catalogue.

    Raises
    ------
    SchemaError
        If a row is no valid spec; names file, line and field.

    Examples
    --------
    >>> min(spec.n_layer for spec in load_job_models())
    2
    """
    text = (resources.files("roofcast.data.job_campaigns") / FILE).read_text(encoding="utf-8")
    return tuple(_spec(line, row) for line, row in enumerate(csv.DictReader(text.splitlines()), start=2))


def _spec(line: int, row: dict[str, str]) -> ModelSpec:
    try:
        return ModelSpec.parse({name: value for name, value in row.items() if value})
    except InputError as error:
        raise SchemaError(error.field, error.problem, FILE, line) from error


@functools.cache
def job_catalog() -> Catalog:
    """Return the catalogue with the models of the training campaigns; cached."""
    return load_catalog().with_models(load_job_models())
