"""Names for people of the codes in answers: engines, metrics, precisions, pricing. JSON keeps the codes."""

import tomllib
from pathlib import Path
from typing import Final

from roofcast.data.prices.regions import UNKNOWN_REGION

_NAMES: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("display_names.toml").read_text(encoding="utf-8")
)
_UNITS: Final = ("_token_per_s", "_per_s", "_s_per_token", "_s", "_w")


def engine_name(engine: str) -> str:
    """Return the name of an engine as its makers write it; the code of one without an entry.

    Examples
    --------
    >>> engine_name("trtllm"), engine_name("llama.cpp")
    ('TensorRT-LLM', 'llama.cpp')
    """
    return _NAMES["engines"].get(engine, engine)


OBJECTIVE_NAMES: Final = _NAMES["objectives"]
"""Names of objectives by code."""

OPERATOR_NAMES: Final = _NAMES["operators"]
"""Names of operators by code, the default first."""


def precision_name(precision: str, weight_bit: float | None = None) -> str:
    """Return the name of a precision, with the bits of a weight where they are not its usual ones.

    Examples
    --------
    >>> precision_name("bf16")
    'BF16'
    """
    return precision.upper() + (f" of {weight_bit:.3g} bits a weight" if weight_bit else "")


def provider_name(provider: str) -> str:
    """Return the name of a provider; the code of one without an entry.

    Examples
    --------
    >>> provider_name("gcp"), provider_name("my-cloud")
    ('Google Cloud', 'my-cloud')
    """
    return _NAMES["providers"].get(provider, provider)


def region_name(region: str) -> str:
    """Return the name of a region; price lists that name none have the code `unknown`.

    Examples
    --------
    >>> region_name("eu-west-1"), region_name("unknown")
    ('eu-west-1', 'region not stated')
    """
    return "region not stated" if region == UNKNOWN_REGION else region


def pricing_name(pricing: str) -> str:
    """Return the name of a kind of price.

    Examples
    --------
    >>> pricing_name("on_demand"), pricing_name("spot")
    ('on demand', 'spot')
    """
    return _NAMES["pricing"].get(pricing, pricing)


def metric_name(metric: str) -> str:
    """Return the name of a metric, of a column or as limits name it.

    Examples
    --------
    >>> metric_name("ttft_s"), metric_name("nttft"), metric_name("output_throughput_token_per_s")
    ('TTFT', 'nTTFT', 'output throughput')
    """
    name = without_unit(metric)
    return _NAMES["metrics"].get(name, name.replace("_", " "))


def without_unit(metric: str) -> str:
    """Return the column of a metric without its unit.

    Examples
    --------
    >>> without_unit("ttft_s"), without_unit("output_throughput_token_per_s")
    ('ttft', 'output_throughput')
    """
    for unit in _UNITS:
        if metric.endswith(unit):
            return metric.removesuffix(unit)
    return metric
