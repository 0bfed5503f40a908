"""Evaluation of the out-of-memory classifier on held-out lineages: ``python -m benchmarks.feasibility``."""

from judge.out_of_memory_scores import out_of_memory_figures
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.training.dataset.training_set import TRAINED_ON, build_training_set


def main() -> None:
    """Print scores and calibration on the shipped campaigns, with lineages held out."""
    catalog = load_catalog()
    attempts = build_training_set(load_campaigns(TRAINED_ON), catalog.models, catalog.accelerators).attempts
    if attempts is not None:
        print("\n\n".join(table.to_string(index=False) for table in out_of_memory_figures(attempts)))


if __name__ == "__main__":
    main()
