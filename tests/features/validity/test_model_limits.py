import pytest

from roofcast.features.validity.model_limits import context_error, split_error
from tests.builders import a_model


@pytest.mark.parametrize(("n_output_token", "is_answered"), [(1, True), (96, True), (97, False)])
def test_requests_up_to_the_context_are_answered(n_output_token: int, is_answered: bool) -> None:
    model = a_model(max_context_token=4096)
    assert (context_error(model, 4000, n_output_token) is None) == is_answered


def test_models_without_a_limit_have_no_bound() -> None:
    assert context_error(a_model(max_context_token=0), 10**9, 1) is None


@pytest.mark.parametrize(("engine", "problem"), [("llama.cpp", "ep: must be 1: llama.cpp"), ("vllm", "None")])
def test_engines_without_expert_parallelism_are_told_so(engine: str, problem: str) -> None:
    model = a_model(n_expert=64, n_expert_per_token=4, moe_intermediate_size=512)
    assert str(split_error(model, 4, 4, engine)).startswith(problem)
