"""Any config is read or refused with an error."""

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import InputError, SchemaError
from roofcast.data.model_config.huggingface import model_from_config, parse_config
from tests.data.model_config.model_configs import PUBLISHED
from tests.effort import n_example

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted({
    *(name for config, _ in PUBLISHED.values() for name in config),
    "text_config", "quantization_config", "n_inner", "kv_lora_rank", "mlp_only_layers", "no_bias", "moe_latent_size",
    "is_encoder_decoder", "layers_block_type", "model_type", "mlp_layer_types", "dtype", "sliding_window_pattern",
})  # fmt: skip


@settings(max_examples=n_example(400), deadline=None)
@given(st.sampled_from(sorted(PUBLISHED)), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4))
def test_any_config_is_read_or_refused(name: str, changes: dict[str, Any]) -> None:
    with contextlib.suppress(InputError):
        spec = model_from_config({**PUBLISHED[name][0], **changes}, "m")
        assert 0 < spec.n_param_active <= spec.n_param


@settings(max_examples=n_example(200), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(SchemaError):
        assert isinstance(parse_config(body), dict)
