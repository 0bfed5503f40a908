"""Tables fit into 80 columns: as columns, without what is equal in all rows, or as folded text."""

from roofcast.serving.cli.text.text_tables import WIDTH, table_text

WIDE = {"model": "owner/a-model-of-a-long-name", "accelerator": "nvidia-h100-sxm-80gb", "engine": "vllm", "note": ""}


def test_a_wide_table_names_what_is_equal_in_all_rows_once() -> None:
    text = table_text([{**WIDE, "concurrency": n, "import_id": "f" * 32} for n in (16, 32)])

    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.count("nvidia-h100-sxm-80gb") == 1
    assert "note" not in text
    assert text.splitlines()[-3:] == ["concurrency", "16", "32"]


def test_a_table_that_stays_too_wide_becomes_a_paragraph_for_each_row() -> None:
    rows = [{name: f"{name}-{n}-of-some-length" for name in ("model", "accelerator", "engine", "key")} for n in "ab"]
    text = table_text(rows)

    assert max(map(len, text.splitlines())) <= WIDTH
    assert [line.split(",")[0] for line in text.splitlines() if not line.startswith(" ")] == [
        "model model-a-of-some-length",
        "model model-b-of-some-length",
    ]


def test_a_table_of_equal_rows_keeps_its_columns() -> None:
    assert "the same in each row" not in table_text([WIDE, WIDE], 40)


def test_a_wide_table_has_a_part_for_each_group() -> None:
    rows = [
        {"provider": provider, "accelerator": "a" * 50, "price": n, "as_of": "b" * 20}
        for provider, n in zip("xyy", (1, 2, 3), strict=True)
    ]
    first, second = table_text(rows, WIDTH, ["provider"]).split("\n\n")

    assert first.startswith("provider x")
    assert second.splitlines()[0].startswith("the same in each row: provider y")
    assert second.splitlines()[-3:] == ["price", "2", "3"]
    assert "the same" not in table_text(rows, 200, ["provider"])
