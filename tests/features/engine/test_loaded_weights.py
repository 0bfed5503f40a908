import pytest

from roofcast.features.engine.kernels.row_kernels import PRECISIONS
from roofcast.features.engine.loaded_weights import expert_padding, loaded_byte
from tests.builders import an_example


def test_layers_that_predict_have_experts_as_the_model_has() -> None:
    experts = {"model__n_param_expert": 3.5e9, "model__n_param_prediction": 1e9}
    without, drafted = (loaded_byte(an_example(**experts, config__n_draft_layer=n)) for n in (0.0, 1.0))
    assert (without["expert"][0], without["prediction"][0]) == (7e9, 0.0)
    assert (drafted["expert"][0], drafted["prediction"][0]) == (8e9, 1e9)
    apart = loaded_byte(an_example(**experts, config__n_draft_layer=5.0))
    assert (apart["expert"][0], apart["prediction"][0]) == (7e9, 5 * 12 * 4096**2 * 2)


@pytest.mark.parametrize(
    ("width", "hidden", "precision", "padding"),
    [
        (2880, 2880, "mxfp4", 2944 / 2880 * 3072 / 2880),
        (2880, 2880, "mxfp4_weight", 2944 / 2880 * 3072 / 2880),
        (2048, 4096, "mxfp4", 1.0),
        (2880, 2880, "bf16", 1.0),
        (0, 2880, "mxfp4", 1.0),
    ],
)
def test_kernels_of_four_bit_experts_round_widths_up(
    width: float, hidden: float, precision: str, padding: float
) -> None:
    d = an_example(
        model__moe_width=width,
        model__hidden_size=hidden,
        config__expert_precision=PRECISIONS.index(precision),
    )
    assert expert_padding(d)[0] == pytest.approx(padding)
