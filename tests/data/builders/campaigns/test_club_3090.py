from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.club_3090 import FILE, build_club_3090
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

TEXT = """# Benchmarks
## Qwen3.6-27B
### Single-card (1x RTX 3090) - llama.cpp
| Compose | Rig | Quant | Narr / Code TPS | Date | Notes |
| --- | --- | --- | ---: | --- | --- |
| `llamacpp/default` | @noonghunna (1× 3090) | Unsloth Q5_K_XL | 21 / 21 | 2026-04-21 | bulletproof |
| `ik-llama/iq4ks-mtp` | @noonghunna (1× 3090, 370 W) | MTP-IQ4_KS | **59.67 / 68.78** (decode 60 / 72) | 2026-05-23 | MTP n=2 |
### Dual-card (2x RTX 3090, TP=2)
| Compose | Rig | KV | Narr / Code TPS | Date | Notes |
| --- | --- | --- | ---: | --- | --- |
| `dual.yml` (v0.24.0) | @Kevin (2× 3090 **NVLink**, 370/420 W) | fp8/e5m2 | **72 / 90** (decode) | 2026-07-13 | MTP n=3, AL 3.4 |
| `dual.yml` | @noonghunna (2× 3090 PCIe, no NVLink) | fp8 | 69 / 89 | 2026-04-29 | tested baseline |
| `dual-dflash.yml` | @six (6× 3090 PCIe) | FP16 | 80 / **125** | 2026-05-05 | DFlash N=5 |
| `dual.yml` | @mix (RTX A5000 + 1× 3090) | fp8 | 56 / 72 | 2026-05-09 | MTP n=3 |
| `dual.yml` | @noonghunna (2× 3090) | fp8 | ~56 / ~72 | 2026-05-09 | MTP n=3 |
| `short row` |
## Tess-4-27B
| Compose | Rig | Narr / Code TPS | Date | Notes |
| --- | --- | ---: | --- | --- |
| `tess-int4-mtp` | @noonghunna (2× 3090) | 50 / 60 | 2026-05-09 | MTP n=3 |
## MoE models
| Compose | Rig | KV | Narr / Code TPS | Date | Notes |
| --- | --- | --- | ---: | --- | --- |
| `qwen3.6-35b-a3b/single/nvfp4/fp8.yml` (TP=1, no-MTP, MAX_NUM_SEQS=4) | @paulp83 (1× RTX 5090, 600 W) | fp8 | 250 / 251 | 2026-07-07 | - |
"""  # noqa: E501, RUF001


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("club")
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_text(TEXT, encoding="utf-8")
    return build_club_3090(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {
        "unknown_precision": 1, "speculation": 1, "rig": 1, "no_outcome": 1, "malformed": 1, "unknown_model": 1,
    }  # fmt: skip
    assert result.n_read == 10


def test_essay_and_program_are_two_rows(result: BuildResult) -> None:
    rows = result.rows[result.rows["engine"] == "ik_llama.cpp"].set_index("n_output_token")
    assert rows["tpot_s"].to_dict() == pytest.approx({800: 1 / 72, 1000: 1 / 60}, rel=1e-5)
    row = rows.loc[800]
    assert (row["speculation"], row["n_speculative_token"], row["power_limit_w"]) == ("mtp", 2, 370)
    assert (row["weight_precision"], row["accelerator"]) == ("int4", "nvidia-rtx-3090-24gb")


def test_two_limits_are_none_of_both_cards(result: BuildResult) -> None:
    row = one(result.rows, stack="club_3090/kevin", n_output_token=1000)
    assert (row["engine_version"], row["kv_precision"], row["peer_to_peer"], row["tp"]) == ("0.24.0", "fp8", "on", 2)
    assert str(row["power_limit_w"]) == "nan"


def test_larger_rig_uses_the_cards_of_the_table(result: BuildResult) -> None:
    row = one(result.rows, stack="club_3090/six", n_output_token=800)
    assert (row["n_accelerator"], row["speculation"], row["peer_to_peer"]) == (2, "draft", "off")


def test_stated_absence_of_speculation_is_zero_tokens(result: BuildResult) -> None:
    row = one(result.rows, stack="club_3090/paulp83", n_output_token=800)
    assert (row["speculation"], row["n_speculative_token"], row["max_num_seqs"]) == ("", 0, 4)
    assert (row["model"], row["accelerator"]) == ("Qwen/Qwen3.6-35B-A3B", "nvidia-rtx-5090-32gb")


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_club_3090(tmp_path)
