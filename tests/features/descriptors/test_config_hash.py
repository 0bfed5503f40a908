import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.columns import DESCRIPTOR_NAMES
from roofcast.features.descriptors.config_hash import _COLUMNS, CELL, config_hashes, joint_hash
from roofcast.features.descriptors.descriptor_table import describe
from tests.builders import a_model, a_question, an_accelerator, an_example, describe_questions

NAMES = ("model", "accelerator", "engine", "precision", "split", "load", "kind")
OUTSIDE = ("workload.n_input_token", "workload.n_output_token", "workload.quantile", "workload.is_mean")


def key(name: str, **changes: float) -> int:
    return int(config_hashes(pd.DataFrame(an_example(**changes)))[name][0])


def test_keys_are_the_same_in_every_process() -> None:
    assert {name: key(name) for name in NAMES} == {
        "model": 4_045_011_854_966_192_341,
        "accelerator": 15_348_134_873_832_316_746,
        "engine": 3_430_018_387_555,
        "precision": 13_424_462_760_970_232_820,
        "split": 538_276_672_409_235_949,
        "load": 14_809_054_211_766_604_116,
        "kind": 16_387_458_325_540_897_331,
    }


@pytest.mark.parametrize(("name", "column"), [(name, c) for name, columns in _COLUMNS.items() for c in columns])
def test_any_change_of_a_description_is_another_key(name: str, column: str) -> None:
    assert column in DESCRIPTOR_NAMES
    changed = pd.DataFrame(an_example())
    changed[column] += 0.25
    before, after = config_hashes(pd.DataFrame(an_example())), config_hashes(changed)
    assert before[name][0] != after[name][0]
    others = set(NAMES) - {name, "kind"}
    assert all(before[other][0] == after[other][0] for other in others)


@pytest.mark.parametrize("column", OUTSIDE)
def test_workload_and_statistic_are_in_no_key(column: str) -> None:
    changed = pd.DataFrame(an_example())
    changed[column] *= 0.5
    assert config_hashes(changed) == config_hashes(pd.DataFrame(an_example()))


def test_names_do_not_matter() -> None:
    specs = {name: a_model(id=name, lineage=name, fold_group=name) for name in ("one", "other")}
    parts = {name: an_accelerator(id=name, name=name) for name in ("p", "q")}
    questions = pd.DataFrame([a_question(model="one", accelerator="p"), a_question(model="other", accelerator="q")])
    for values in config_hashes(describe(questions, specs, parts)).values():
        assert values[0] == values[1]


def test_engines_that_nobody_measured_share_a_key() -> None:
    questions = [a_question(engine=name) for name in ("ours", "theirs", "vllm")]
    engine = config_hashes(describe_questions(*questions))["engine"]
    assert engine[0] == engine[1] != engine[2]


def test_loads_differ_by_kind_and_not_by_size() -> None:
    closed, opened = a_question(), a_question(concurrency=np.nan, request_rate=2)
    offline, static = a_question(concurrency=np.nan, load="offline"), a_question(load="static_batch")
    load = config_hashes(describe_questions(closed, opened, offline, static, closed | {"concurrency": 99}))["load"]
    assert len(set(load.tolist())) == 4
    assert load[0] == load[4]


def test_kinds_of_architecture_differ_by_kernels_and_not_by_size() -> None:
    catalog = load_catalog()
    names = (
        "meta-llama/Llama-2-7b-hf",
        "meta-llama/Llama-2-13b-hf",
        "mixtral-8x7b",
        "deepseek-v3",
        "google/flan-ul2",
    )
    specs = [catalog.model(name) for name in names]
    kind = [int(config_hashes(describe_questions(model=spec))["kind"][0]) for spec in specs]
    assert kind[0] == kind[1]
    assert len(set(kind[1:])) == 4
    assert key("kind", config__flash_attention=0.0) != key("kind")


def test_whole_numbers_are_as_good_as_floating_ones() -> None:
    whole = pd.DataFrame(an_example()).astype({"config.tp": int, "config.engine": int, "model.n_layer": int})
    for name, values in config_hashes(whole).items():
        assert values[0] == key(name), name


def test_joined_keys_are_equal_where_all_parts_are() -> None:
    keys = config_hashes(describe_questions(a_question(), a_question(engine="vllm"), a_question(n_accelerator=2)))
    cells = joint_hash(keys, CELL)
    assert cells[0] == cells[2] != cells[1], "the split is in no cell"
    assert len(set(joint_hash(keys, (*CELL, "split")).tolist())) == 3
    assert (joint_hash(keys, ("model", "engine")) != joint_hash(keys, ("engine", "model"))).any()


def test_keys_are_hashes_that_others_can_make_too() -> None:
    table = describe_questions(
        a_question(), a_question(engine="vllm"), a_question(concurrency=np.nan, load="offline")
    )
    found = config_hashes(table)
    for name, columns in _COLUMNS.items():
        wanted = pd.util.hash_pandas_object(table[list(columns)], index=False)
        np.testing.assert_array_equal(found[name], wanted)
    wanted = pd.util.hash_pandas_object(pd.DataFrame({name: found[name] for name in CELL}), index=False)
    np.testing.assert_array_equal(joint_hash(found, CELL), wanted)


def test_zeros_of_both_signs_are_one_and_all_nan_too() -> None:
    other = -np.array([np.nan])[0]
    assert key("model", model__sliding_window=0.0) == key("model", model__sliding_window=-0.0)
    assert key("model", model__sliding_window=np.nan) == key("model", model__sliding_window=other)
