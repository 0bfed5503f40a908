"""Blocks of the README and the documentation pages."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
    for file in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if file.name != "commands.md"
}
"""Text of each page by path; the page of commands is generated."""

_END: Final = {">", ">>", "|", ";", ")", "&&", "||", "<", "<<"}


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


def all_blocks(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each block of a page, in their order."""
    return re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


def commands(block: str) -> Iterator[list[str]]:
    """Yield the arguments of each `roofcast` command of a shell block."""
    text = re.sub(r"<<'END'.*?^END$", "", block, flags=re.MULTILINE | re.DOTALL).replace("\\\n", " ")
    for line in text.splitlines():
        words = _words(line) if "roofcast" in line else []
        for i, word in enumerate(words):
            if word == "roofcast" and (i == 0 or words[i - 1] in _END):
                rest = words[i + 1 :]
                yield rest[: next((n for n, part in enumerate(rest) if part in _END), len(rest))]


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line.replace("$(", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)
