from __future__ import annotations

from roofcast.data.campaigns.built import Built
from roofcast.data.training_campaigns.build_neuron import build_neuron
from tests.data.builders import SAMPLES

ROOT = SAMPLES / "training"


def built() -> Built:
    return build_neuron(ROOT)


def reasons() -> dict[str, str]:
    quarantined = built().quarantined
    return dict(zip(quarantined["reference"], quarantined["reason"], strict=True))


def test_chips_are_counted_not_cores() -> None:
    rows = built().rows
    row = rows[(rows["model"] == "openai/gpt3-175b") & (rows["framework_version"] == "2.15.2")].iloc[0]
    assert (row["n_node"], row["n_accelerator"], row["tp"], row["pp"]) == (32, 512, 32, 8)


def test_the_first_tables_write_sizes_another_way() -> None:
    rows = built().rows
    row = rows[(rows["model"] == "aws-neuron/gpt3-6.7b") & (rows["n_node"] == 16)].iloc[0]
    assert (row["tp"], row["n_token_per_sequence"], row["n_global_batch_sequence"]) == (8, 2048, 1024)
    assert row["precision_recipe"] == "stochastic-rounding"


def test_the_second_phase_of_bert_has_longer_sequences() -> None:
    rows = built().rows
    assert set(rows[rows["n_micro_batch_sequence"] == 2]["n_token_per_sequence"]) == {512}


def test_a_figure_under_another_topology_was_corrected() -> None:
    found = reasons()
    assert found["union_trn1_trn1_trn1n_nlp_data.csv:3"] == "superseded"
    assert found["union_trn1_nlp_data.csv:2"] == "superseded"
    rows = built().rows
    first = rows[(rows["model"] == "openai/gpt3-175b") & (rows["date"] == "2023-08-29")]
    assert first["tp"].tolist() == [32]


def test_images_are_no_language() -> None:
    assert reasons()["union_trn1_training_data_vision_transformers.csv:2"] == "unknown_model"
