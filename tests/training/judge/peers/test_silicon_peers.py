import csv
from importlib import resources

from benchmarks.peers.aiconfigurator_run import QUERY, arguments, key_of, n_accepted, query_of
from judge.peers.silicon_peers import FOLDER, load_aiconfigurator_answers, load_silicon_index

CAMPAIGN = resources.files("roofcast.data.campaigns") / "silicon"


def rows_by_number() -> dict[str, dict[str, str]]:
    with (CAMPAIGN / "rows.csv").open(encoding="utf-8") as stream:
        return {row["note"].partition(";")[0].removeprefix("row "): row for row in csv.DictReader(stream)}


def test_recorded_queries_match_the_campaign() -> None:
    by_key = rows_by_number()
    with (FOLDER / "peer_aiconfigurator.csv").open(encoding="utf-8") as stream:
        recorded = list(csv.DictReader(stream))
    stale = [row["row"] for row in recorded if key_of(query_of(by_key[row["row"]])) != key_of(row)]
    assert not stale, "run benchmarks/peers/aiconfigurator_run.py again"


def test_an_answer_is_of_one_aggregated_measurement_or_has_a_reason() -> None:
    answers, index = load_aiconfigurator_answers(), load_silicon_index()
    assert answers.index.is_unique
    assert set(answers.index) <= set(index.loc[index["mode"] == "agg", "measured_in"])
    is_answered = answers["status"] == "ok"
    assert (answers.loc[is_answered, ["ttft_s", "tpot_s", "call_s"]] > 0).all(axis=None)
    assert answers.loc[~is_answered, "reason"].notna().all()
    assert not answers["reason"].str.contains(r"/\w+/", na=False).any()


def test_a_total_is_a_call_with_two_workers() -> None:
    total = next(row for row in rows_by_number().values() if "disaggregated_total" in row["note"])
    query = query_of(total)
    n = int(float(total["n_accelerator"]))
    assert query["mode"] == "disagg"
    assert arguments(query)["decode_batch_size"] == query["batch_size"]
    assert query["attention_dp_size"] == query["moe_ep_size"] == n // 2
    assert set(query) <= set(QUERY)


def test_drafted_tokens_are_accepted_as_the_former_interface_took_for_granted() -> None:
    assert [round(n_accepted(n), 4) for n in (1, 2, 3)] == [0.85, 1.105, 1.105]
