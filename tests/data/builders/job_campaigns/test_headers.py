from builders.job_campaigns.headers import normalize_heading, read_cells
from builders.job_campaigns.source_rows import PER_ACCELERATOR


def test_headings_are_normalized() -> None:
    assert normalize_heading('<div style="width:100px;">Model ID</div>') == "modelid"
    assert normalize_heading("GPU 数量") == "gpu数量"


def test_cells_are_in_base_units() -> None:
    cells = read_cells(
        {
            "Sequence Length (K)": "64",
            "Memory(GiB)": "2",
            "Peak Mem(MiB)": "x",
            "MFU": "47.5",
            "Tokens/sec/GPU": "1,002",
        }
    )
    assert cells == {
        "n_token_per_sequence": 65536.0, "memory_byte_per_accelerator": 2.0 * 2**30, "mfu_ratio": 0.475,
        PER_ACCELERATOR: 1002.0,
    }  # fmt: skip


def test_unknown_headings_and_zeros_are_skipped() -> None:
    assert read_cells({"Loss": "1.2", "TP": "0"}) == {}
