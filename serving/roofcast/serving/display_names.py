"""Names for people of the codes in answers: engines, metrics, precisions, pricing. JSON keeps the codes."""

from typing import Final

from roofcast.data.prices.regions import UNKNOWN_REGION

_ENGINES: Final = {
    "deepspeed": "DeepSpeed",
    "deepspeed-mii": "DeepSpeed-MII",
    "fastertransformer": "FasterTransformer",
    "lmdeploy": "LMDeploy",
    "mlc-llm": "MLC LLM",
    "optimum-habana": "Optimum Habana",
    "sglang": "SGLang",
    "tgi": "TGI",
    "tgis": "TGIS",
    "transformers": "Transformers",
    "transformers-neuronx": "Transformers NeuronX",
    "trtllm": "TensorRT-LLM",
    "turbomind": "TurboMind",
    "vllm": "vLLM",
}
_PROVIDERS: Final = {
    "aws": "AWS",
    "azure": "Azure",
    "coreweave": "CoreWeave",
    "crusoe": "Crusoe",
    "dataoorts": "Dataoorts",
    "digitalocean": "DigitalOcean",
    "gcp": "Google Cloud",
    "genesis-cloud": "Genesis Cloud",
    "gpuhub": "GPUhub",
    "hyperstack": "Hyperstack",
    "jarvis-labs": "Jarvislabs",
    "lambda": "Lambda",
    "modal": "Modal",
    "nebius": "Nebius",
    "novita": "Novita",
    "oci": "Oracle Cloud",
    "packet-ai": "Packet.ai",
    "qubrid": "Qubrid",
    "runpod": "Runpod",
    "runpod-community": "Runpod (community)",
    "runpod-secure": "Runpod (secure)",
    "scaleway": "Scaleway",
    "tensordock": "TensorDock",
    "verda": "Verda",
    "vultr": "Vultr",
}
_PRICING: Final = {
    "capacity_block": "capacity block, reserved for days",
    "on_demand": "on demand",
    "reserved_1y": "reserved for 1 year",
    "reserved_3y": "reserved for 3 years",
}
_METRICS: Final = {
    "e2e": "E2E",
    "itl": "ITL",
    "nttft": "nTTFT",
    "tpot": "TPOT",
    "ttft": "TTFT",
}
_UNITS: Final = ("_token_per_s", "_per_s", "_s_per_token", "_s", "_w")


def engine_name(engine: str) -> str:
    """Return the name of an engine as its makers write it; the code of one without an entry.

    Examples
    --------
    >>> engine_name("trtllm"), engine_name("llama.cpp")
    ('TensorRT-LLM', 'llama.cpp')
    """
    return _ENGINES.get(engine, engine)


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
    return _PROVIDERS.get(provider, provider)


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
    return _PRICING.get(pricing, pricing)


def metric_name(metric: str) -> str:
    """Return the name of a metric, of a column or as limits name it.

    Examples
    --------
    >>> metric_name("ttft_s"), metric_name("nttft"), metric_name("output_throughput_token_per_s")
    ('TTFT', 'nTTFT', 'output throughput')
    """
    name = without_unit(metric)
    return _METRICS.get(name, name.replace("_", " "))


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
