"""The README is one screen, its links exist, and its figures are those of the scoreboard."""

import re

from codegen.docs_tables import TABLES, with_tables
from tests.docs.pages import PAGES, ROOT, blocks, commands

README = PAGES["README.md"]


def test_it_is_one_screen() -> None:
    assert len(README.splitlines()) <= 80


def test_the_figures_are_those_of_the_scoreboard() -> None:
    assert with_tables(README, {"headline": TABLES["headline"]}) == README, "run `make reference`"


def test_it_leads_to_a_recommendation_a_manifest_and_an_import() -> None:
    listed = [arguments for block in blocks("README.md", "sh") for arguments in commands(block)]
    assert {"recommend", "import"} <= {arguments[0] for arguments in listed}
    assert any("--deployment" in arguments for arguments in listed)
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"serve", "test", "docs"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_every_link_exists_and_no_figure_is_missing() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        document = (ROOT / name).read_text(encoding="utf-8")
        assert "@@" not in document
        for target in re.findall(r"\]\((?!http)([^)#]+)", document):
            assert (ROOT / target).exists(), target
