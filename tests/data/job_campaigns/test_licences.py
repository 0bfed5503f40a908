from pathlib import Path

import pytest

from roofcast.data.campaigns import CAMPAIGNS, CampaignInfo, load_campaign_info, load_licence
from roofcast.data.job_campaigns import (
    TRAINING_CAMPAIGNS,
    load_job_campaign_info,
    load_job_licence,
)
from tests.every_row import for_every

NOTICES = {
    "MIT": "The above copyright notice and this permission notice shall be included",
    "BSD-3-Clause": "Redistributions in binary form must reproduce the above copyright",
    "CC-BY-4.0": "Attribution 4.0 International",
    "CC-BY-SA-4.0": "Attribution-ShareAlike 4.0 International",
    "CDLA-Permissive-2.0": "Community Data License Agreement - Permissive - Version 2.0",
}
"""Licences whose text or notice goes with the data, and words of it. Apache's text is the package's own licence."""

OURS: dict[str, tuple[CampaignInfo, str]] = {
    **{name: (load_campaign_info(name), load_licence(name)) for name in CAMPAIGNS},
    **{name: (load_job_campaign_info(name), load_job_licence(name)) for name in TRAINING_CAMPAIGNS},
}


@for_every(OURS)
def test_a_licence_that_asks_for_its_notice_comes_with_the_rows(name: str) -> None:
    info, text = OURS[name]
    if info.licence == "Apache-2.0" or info.licence.endswith(" (unverified)"):
        assert not info.licence_file
    else:
        assert NOTICES[info.licence] in text


@pytest.mark.parametrize(
    "name", [name for name, (info, _) in OURS.items() if info.licence in {"MIT", "BSD-3-Clause"}]
)
def test_a_notice_names_the_holder_of_the_copyright(name: str) -> None:
    _, text = OURS[name]
    assert any("(c)" in line.casefold() or "copyright 20" in line.casefold() for line in text.splitlines()[:6])


def test_the_package_comes_with_apaches_text() -> None:
    text = (Path(__file__).parents[3] / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION" in text


@pytest.mark.parametrize("name", ["aws_neuron", "aws_neuron_training"])
def test_share_alike_campaigns_state_their_changes(name: str) -> None:
    info, _ = OURS[name]
    assert "changed:" in info.attribution
    assert "https://creativecommons.org/licenses/by-sa/4.0/" in info.attribution
