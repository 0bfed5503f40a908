from typing import Any

from roofcast.data.catalog import load_catalog
from roofcast.serving.predict.name_remarks import name_remarks, request_remarks

CATALOG = load_catalog()


def test_each_row_says_what_its_names_are_taken_as() -> None:
    columns: dict[str, list[Any]] = {
        "model": ["Qwen/Qwen3-8B", "qwen 3 8b", None],
        "accelerator": ["nvidia-h100-sxm-80gb", "MI300X", "nothing"],
        "weight_precision": ["", "AWQ", "bf16"],
        "engine": ["vLLM", "", "LM Studio"],
        "n_input_token": [1, 2, 3],
    }
    assert name_remarks(columns, CATALOG) == [
        "",
        "model 'qwen 3 8b' is taken as Qwen/Qwen3-8B; it may also mean Qwen/Qwen3-VL-8B-Instruct; "
        "accelerator 'MI300X' is taken as amd-mi300x-192gb; weight_precision 'AWQ' is taken as int4",
        "engine 'LM Studio' is predicted as llama.cpp",
    ]


def test_the_order_of_columns_changes_no_remark() -> None:
    columns = {"accelerator": ["p5.48xlarge"], "engine": ["LM Studio"], "model": ["qwen 3 8b"]}
    assert name_remarks(columns, CATALOG) == name_remarks(dict(reversed(columns.items())), CATALOG)


def test_names_as_the_catalogue_spells_them_have_no_remark() -> None:
    assert name_remarks({"model": ["qwen3-8b"] * 3, "n_input_token": [1, 2, 3]}, CATALOG) == ["", "", ""]


def test_a_request_says_what_its_names_are_taken_as() -> None:
    names = {"accelerator": ["5090", "nvidia-t4-16gb"], "weight_precisions": ["AWQ", "fp8"]}
    remarks = request_remarks("llama 3.3 70b", names, CATALOG)
    assert [remark.split(";")[0] for remark in remarks] == [
        "model 'llama 3.3 70b' is taken as meta-llama/Llama-3.3-70B-Instruct",
        "accelerator '5090' is taken as nvidia-rtx-5090-32gb",
        "weight_precisions 'AWQ' is taken as int4",
    ]
    assert request_remarks({"config": {}}, {}, CATALOG) == []
