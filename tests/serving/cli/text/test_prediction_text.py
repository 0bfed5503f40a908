"""A prediction says how many rows failed and why, and which blanks were assumed."""

from pathlib import Path

from roofcast.serving.cli.text.prediction_text import MAX_REASON, prediction_text, question_text, support_text
from roofcast.serving.cli.text.text_tables import WIDTH

OK = {"status": "ok", "reason": "", "assumed": "kv_precision graphs engine date"}
FAILED = [
    {"status": "invalid", "reason": f"tp: must divide {n}, got 3", "assumed": ""} for n in range(MAX_REASON + 2)
]


def text_of(*, why: bool) -> str:
    answers = [OK, *FAILED]
    return prediction_text(answers, range(2, 2 + len(answers)), Path("out.csv"), why=why)


def test_failed_rows_and_assumed_columns_are_folded_until_they_are_asked_for() -> None:
    folded, unfolded = text_of(why=False), text_of(why=True)

    assert folded.startswith(
        "5 invalid, 1 ok\n5 of 6 rows have no answer; the column `reason` of out.csv says why:\n"
    )
    assert "   line 3: tp: must divide 0, got 3" in folded
    assert "   and 2 more; --why names all" in folded
    assert "kv_precision (1), graphs (1), engine (1) and 1 more columns; --why names all" in " ".join(folded.split())
    assert "line 7: tp: must divide 4, got 3" in unfolded
    assert "date (1)" in unfolded
    assert "--why" not in unfolded
    assert max(map(len, (folded + unfolded).splitlines())) <= WIDTH


def test_a_table_without_failures_and_assumptions_has_one_line() -> None:
    assert prediction_text([OK | {"assumed": ""}], [2], Path("out.csv"), why=False) == "1 ok\n"


def test_an_answered_question_has_the_reason_to_doubt_it() -> None:
    question = {"model": "m", "accelerator": "l40s", "n_accelerator": "4"}
    answer = OK | {"tpot_s": 0.02, "tpot_s_lo": 0.01, "tpot_s_hi": 0.04, "outside": False, "reason": "tp spans nodes"}
    answer["support"] = "near"
    assert question_text(question, answer, 0.9).endswith("\ntp spans nodes\n")
    assert "None" not in question_text(question, answer | {"reason": None}, 0.9)


def test_an_answer_says_what_it_rests_on_and_who_measured_the_same() -> None:
    answer = {"support": "measured", "observed_ttft_s": None, "observed_tpot_s": 0.0141}
    answer |= {"observed_stack": "a lab/rig", "observed_engine_version": "0.5.12", "observed_date": "2026-06-03"}
    assert support_text(answer) == (
        "measured: TPOT 14.1 ms (a lab/rig, engine 0.5.12, 2026-06-03); --stack 'a lab/rig' answers as they run it"
    )
    asked = "measured: TPOT 14.1 ms (a lab/rig, engine 0.5.12, 2026-06-03)"
    assert support_text(answer, "a lab/rig") == support_text(answer, "a lab") == asked
    own = answer | {"observed_stack": None}
    assert support_text(own) == "measured: TPOT 14.1 ms (engine 0.5.12, 2026-06-03)"
    for support in ("near", "extrapolated"):
        assert support_text({"support": support}).startswith(f"{support}: ")
