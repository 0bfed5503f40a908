import numpy as np

from roofcast.features.engine.coefficient_rows import coefficient_rows
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, NAMES, StackCoefficients
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import estimate_metrics
from tests.builders import an_example

N_ROW = 400
CHOICES = {
    "model.n_moe_layer": (0, 16), "model.n_linear_layer": (0, 8), "model.n_sparse_layer": (0, 8),
    "model.n_mla_layer": (0, 16), "model.n_encoder_layer": (0, 12), "config.flash_attention": (0, 1),
    "config.is_eager": (0, 1), "config.tp": (1, 4), "config.pp": (1, 2), "config.cp": (1, 2),
    "config.expert_rank": (1, 4, 8), "config.n_prefill_accelerator": (0, 4), "config.n_draft_token": (0, 3),
    "config.acceptance_ratio": (np.nan, 0.6), "config.poll_interval_step": (1, 10), "workload.is_static": (0, 1),
    "workload.length_variation": (0, 0.5), "workload.concurrency": (1, 16, 4000),
    "workload.n_input_token": (100, 9000), "hardware.is_amd": (0, 1), "config.age_year": (0, 0.5),
    "config.host_ratio": (0, 1), "config.is_mixed": (0, 1), "config.is_overlapped": (0, 1),
}  # fmt: skip
"""Values that decide whether a coefficient acts on a query."""


def test_a_coefficient_changes_the_rows_that_it_acts_on_and_no_others() -> None:
    random = np.random.default_rng(0)
    experts = {"model.n_expert": 8.0, "model.n_expert_per_token": 2.0, "model.moe_width": 2048.0}
    d = {name: np.full(N_ROW, column[0]) for name, column in an_example(**experts).items()}
    d |= {name: random.choice(np.array(values, dtype=float), N_ROW) for name, values in CHOICES.items()}
    at = StackCoefficients(DEFAULT_COEFFICIENTS.typical[None], np.zeros(N_ROW, dtype=np.intp))
    before, rows = estimate_metrics(d, estimate(d, at)), coefficient_rows(d)
    assert list(rows) == list(NAMES)
    for name in NAMES:
        after = estimate_metrics(d, estimate(d, at.shift([name], 0.1)))
        is_changed = np.any([before[metric] != after[metric] for metric in before], axis=0)
        assert is_changed.any() == rows[name].any(), name
        assert not (is_changed & ~rows[name]).any(), name
