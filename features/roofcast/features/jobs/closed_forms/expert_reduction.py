"""Weights and work of a mixture of experts that loses experts."""

from __future__ import annotations

from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.model_descriptors import expert_param


def reduced_parameters(spec: ModelSpec, pruned_ratio: float = 0.0, skipped_ratio: float = 0.0) -> tuple[float, float]:
    """Return the weights of the model and those that one token uses, without pruned and skipped experts.

    Parameters
    ----------
    pruned_ratio
        Share of the routed experts that are removed: it saves memory, and no work while as many are chosen.
    skipped_ratio
        Share of the chosen experts that a token skips: it saves work, and no memory.

    References
    ----------
    X. Lu et al., "Not All Experts are Equal: Efficient Expert Pruning and Skipping for Mixture-of-Experts Large
    Language Models", 2024.

    Examples
    --------
    Mixtral 8x7B has 45.1 billion weights in experts, 11.3 of which a token uses. Two of eight experts pruned save
    11.3; half of the chosen ones skipped save 5.6 of the work:

    >>> from roofcast.data.catalog import load_catalog
    >>> mixtral = load_catalog().models["mistralai/Mixtral-8x7B-v0.1"]
    >>> [round(n / 10**9, 1) for n in reduced_parameters(mixtral)]
    [46.7, 12.9]
    >>> [round(n / 10**9, 1) for n in reduced_parameters(mixtral, pruned_ratio=0.25, skipped_ratio=0.5)]
    [35.4, 7.2]
    """
    n_expert_param = expert_param(spec)
    used = n_expert_param * spec.n_expert_per_token / max(spec.n_expert, 1)
    return spec.n_param - pruned_ratio * n_expert_param, spec.n_param_active - skipped_ratio * used
