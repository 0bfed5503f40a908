from __future__ import annotations

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.neuron import build_neuron
from tests.data.row_builders import SAMPLES

ROOT = SAMPLES / "training"


def built() -> BuildResult:
    return build_neuron(ROOT)


def reasons() -> dict[str, str]:
    rejected = built().rejected
    return dict(zip(rejected["reference"], rejected["reason"], strict=True))


def test_accelerators_count_chips() -> None:
    rows = built().rows
    row = rows[(rows["model"] == "openai/gpt3-175b") & (rows["framework_version"] == "2.15.2")].iloc[0]
    assert (row["n_node"], row["n_accelerator"], row["tp"], row["pp"], row["dp"]) == (32, 512, 16, 8, 4)
    assert row["note"].startswith("TP=32 DP=4 PP=8 and a micro batch of 1 in NeuronCores, two a chip")


def test_replicas_of_a_chip_are_one_with_twice_the_micro_batch() -> None:
    rows = built().rows
    row = rows[rows["n_global_batch_sequence"] == 1048576].iloc[0]
    assert (row["tp"], row["pp"], row["dp"], row["n_accelerator"]) == (1, 1, 256, 256)
    assert row["n_micro_batch_sequence"] == 32


def test_topology_with_idle_nodes_is_rejected() -> None:
    assert reasons()["union_trn1_training_data_decoder.csv:4"] == "impossible_split"


def test_sizes_of_first_tables_are_parsed() -> None:
    rows = built().rows
    row = rows[(rows["model"] == "aws-neuron/gpt3-6.7b") & (rows["n_node"] == 16)].iloc[0]
    assert (row["tp"], row["dp"], row["n_token_per_sequence"], row["n_global_batch_sequence"]) == (4, 64, 2048, 1024)
    assert row["precision_recipe"] == "stochastic-rounding"


def test_second_phase_of_bert_has_longer_sequences() -> None:
    rows = built().rows
    assert set(rows[rows["n_micro_batch_sequence"] == 4]["n_token_per_sequence"]) == {512}


def test_last_topology_of_a_figure_counts() -> None:
    found = reasons()
    assert found["union_trn1_trn1_trn1n_nlp_data.csv:3"] == "superseded"
    assert found["union_trn1_nlp_data.csv:2"] == "superseded"
    rows = built().rows
    first = rows[(rows["model"] == "openai/gpt3-175b") & (rows["date"] == "2023-08-28")]
    assert first["dp"].tolist() == [4]
    assert first["note"].str.endswith("; setting as corrected on 2023-09-01").all()


def test_vision_models_are_rejected() -> None:
    assert reasons()["union_trn1_training_data_vision_transformers.csv:2"] == "unknown_model"
