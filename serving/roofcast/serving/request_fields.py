"""Fields that requests share: names, cells, references, models, interval level; and the errors of their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from roofcast.data.errors import MAX_GIVEN, InputError, UnknownNameError, choice_error, join_errors
from roofcast.serving.defaults import OPERATOR_TEXT, Operator

if TYPE_CHECKING:
    from roofcast.serving.stacks.stack_choice import StackUsed

MAX_LISTED_NAMES: Final = 20
"""Longest list of known names that an error shows when no name is similar."""

PROVIDER_OF: Final = {"amazon": "aws", "google": "gcp", "microsoft": "azure", "oracle": "oci"}
"""Provider ids by common names."""


def unknown_name_error(field: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name, which suggests similar names or lists the known ones.

    Examples
    --------
    >>> str(unknown_name_error("limits.statistic", "p42", ["p50", "p95"]))
    "limits.statistic: no 'p42' is known; there are p50, p95"
    >>> unknown_name_error("providers", "Amazon", ["aws", "lambda"]).near
    ['aws']
    """
    names = sorted(set(known))
    error = UnknownNameError(field, name, names)
    provider = PROVIDER_OF.get(name.casefold())
    if provider in names:
        error.near = [provider]
        error.problem = f"no {name!r} is known; did you mean {provider!r}?"
    elif not error.near and len(names) <= MAX_LISTED_NAMES:
        error.problem += f"; there are {', '.join(names)}"
    return error


Text = Annotated[str, Field(min_length=1, max_length=200)]
MAX_TOKEN: Final = 10_000_000
Tokens = Annotated[float, Field(ge=1, le=MAX_TOKEN)]


@dataclass(frozen=True, slots=True)
class Flag:
    """Mark of a field of a request that the command line has an option for.

    - `names`: Of the option, such as `--limit --slo`; by default the field's.
    - `metavar`: Form of its value, by default from the field's type.
    - `is_amount`: Whether it is a number that may have a suffix, such as 4k.
    """

    names: str = ""
    metavar: str | None = None
    is_amount: bool = False


class Message(BaseModel):
    """Base of requests: unknown fields, NaN, infinities, and texts or booleans in place of numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True, use_attribute_docstrings=True)


Config = dict[str, Any]


def examples(*requests: Config) -> ConfigDict:
    """Return the configuration of a request with examples for its schema."""
    return ConfigDict(json_schema_extra={"examples": [*requests]})


Level = Annotated[float, Field(gt=0, lt=1, description="Probability of the intervals, for an unseen LLM.")]


def _check_cell(value: object) -> object:
    if isinstance(value, list | dict):
        raise ValueError("must be a number, a text, true, false or null")
    if isinstance(value, str) and len(value) > 1000:
        raise ValueError("must be at most 1000 characters long")
    return value


Value = float | int | str | bool | None
Cell = Annotated[Value, BeforeValidator(_check_cell)]
MeasuredRow = dict[Text, Cell]
RowValue = Annotated[Any, WithJsonSchema(TypeAdapter(Value).json_schema())]
Row = dict[Text, RowValue]
"""Row of a question, which `roofcast.data.measurements.cells.CellParser` checks: the schema documents it."""

References = Annotated[
    list[Row],
    Field(
        max_length=200,
        description="Reference measurements to condition the predictions on: rows with what was measured, in "
        "`ttft_s`, `tpot_s`, `output_throughput_token_per_s`, `itl_s` or `e2e_s`. One invalid row fails all.",
    ),
]

StackName = Annotated[
    Text | None,
    Field(
        description="Name of your stack profile; else of a profile that the command line of the service made; "
        "else of a measured stack of `/v1/measured-stacks`, as owner/part, or owner if it has only one. The rows of "
        "a profile condition the predictions as references do; with a measured stack the predictions are about "
        "that stack.",
    ),
]


OperatorName = Annotated[Operator, Field(description=OPERATOR_TEXT)]


class StackResponse(BaseModel):
    """The stack that an answer is about: a stack profile of the caller, a shared one, or a measured stack."""

    name: str
    kind: Literal["profile", "shared_profile", "measured"]
    notes: Annotated[list[str], Field(description="Such as rows of the profile that cannot be used any more.")] = []

    @classmethod
    def of(cls, used: StackUsed | None) -> Self | None:
        """Return the field of an answer that names its stack; None if the request names none."""
        return cls(name=used.name, kind=used.kind, notes=[*used.notes]) if used else None


QWEN_LIKE_CONFIG: Config = {
    "model_type": "qwen3",
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}


class ModelConfig(Message):
    """A model that is not in the catalogue, by its Hugging Face ``config.json``."""

    name: Text
    config: Config


InlineModelList = Annotated[list[ModelConfig], Field(max_length=100)]

ModelChoice = Annotated[
    Annotated[Text, Tag("by name")] | Annotated[ModelConfig, Tag("by config")],
    Discriminator(lambda value: "by name" if isinstance(value, str) else "by config"),
]

MODEL_FLAG: Final = Flag(metavar="NAME")


_QUOTED: Final = re.compile(r"'([^']*)'")
"""A choice in pydantic's text of those that it expects."""

_SCALARS: Final = (str, int, float, type(None))


def validation_error(error: ValidationError) -> InputError:
    """Return the error of all fields that a request model refuses.

    Parts of a path with a space are tags of alternatives, such as `a mean`.
    """
    errors = []
    for part in error.errors():
        names = [str(name) for name in part["loc"] if name != "" and " " not in str(name)]
        errors += part_errors(part, ".".join(names))
    return join_errors(errors)


def part_errors(part: Mapping[str, Any], field: str) -> list[InputError]:
    """Return the errors of one part of a pydantic error, whose place is this field."""
    cause = part.get("ctx", {}).get("error")
    if isinstance(cause, InputError) and not any(one.field for one in cause.all):
        return [InputError(field, one.problem, one.mentions) for one in cause.all]
    if part["type"] == "literal_error":
        return [choice_error(field, str(part["input"]), _QUOTED.findall(part["ctx"]["expected"]))]
    message = str(part["msg"]).removeprefix("Value error, ")
    error = InputError(field, message[:1].lower() + message[1:])
    if part["type"] not in {"missing", "value_error", "extra_forbidden"} and isinstance(part["input"], _SCALARS):
        error.given = str(part["input"])
        value = part["input"][:MAX_GIVEN] if isinstance(part["input"], str) else part["input"]
        error.problem += f", got {value!r}"
        error.args = (error.field, error.problem)
    return [error]
