"""Reader of GPUStack's performance pages: Markdown with commands and the printed results of benchmark clients."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

FIRST_LABEL: Final = "Successful requests"
"""Label of the first figure of a printed result."""
COMMANDS: Final = ("vllm serve", "sglang.launch_server", "trtllm-serve", "mindie serve")

_FIGURE: Final = re.compile(r"\s*([^:]+?):\s+([\d.]+)\s*")
_PARAMETERS: Final = re.compile(r"- (?:(Baseline|Optimized) )?Backend Parameters:\s*(\S*)")
_VERSION: Final = re.compile(r"- ([A-Za-z-]+):? v?(\S+)")
_HEADING: Final = re.compile(r"(#+) (.*)")


@dataclass(frozen=True)
class PageRun:
    """One printed result, with what the page states before it.

    - `reference`: ``file:line`` of the result.
    - `page_model`, `hardware`, `versions`: Setup of the page: text of its sections, versions by engine name.
    - `recommended`: Command of the page's conclusion.
    - `heading`: Headings above the result, joined.
    - `command`: Serving command or its parameters; blank if the page states none.
    - `variant`: ``Baseline``, ``Optimized`` or blank.
    - `comment`: Comment line above the result.
    - `profile`: Settings of the benchmark profile; empty for pages that have none.
    - `figures`: Printed numbers by label.
    """

    reference: str
    page_model: str = ""
    hardware: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    recommended: str = ""
    heading: str = ""
    command: str = ""
    variant: str = ""
    comment: str = ""
    profile: dict[str, str] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)


def read_page(name: str, text: str) -> Iterator[PageRun]:
    """Yield the printed results of a page in their order."""
    yield from _PageReader(name).runs(text.splitlines())


class _PageReader:
    def __init__(self, name: str) -> None:
        self._state = PageRun(name)
        self._headings: dict[int, str] = {}
        self._profiles: dict[str, dict[str, str]] = {}
        self._profile = ""

    def runs(self, lines: list[str]) -> Iterator[PageRun]:
        block: list[str] | None = None
        for number, line in enumerate(lines, start=1):
            if line.strip().startswith("```"):
                if block is not None:
                    yield from self._block(block, number - len(block))
                block = [] if block is None else None
            elif block is not None:
                block.append(line)
            else:
                self._text(line)

    def _text(self, line: str) -> None:
        heading = _HEADING.fullmatch(line)
        parameters = _PARAMETERS.match(line)
        section = self._headings.get(3, "")
        version = _VERSION.fullmatch(line)
        if heading:
            level = len(heading[1])
            self._headings = {n: text for n, text in self._headings.items() if n < level} | {level: heading[2]}
            self._profile = ""
            self._state = replace(self._state, heading=" > ".join(t for n, t in self._headings.items() if n > 2))
        elif line.startswith("- Profile: "):
            self._profile = line.partition("`")[2].rstrip("`")
        elif parameters:
            self._state = replace(self._state, variant=parameters[1] or "", command="")
        elif section == "Model" and line and not self._state.page_model:
            self._state = replace(self._state, page_model=line.removeprefix("- "))
        elif section == "Hardware" and line and not self._state.hardware:
            self._state = replace(self._state, hardware=line)
        elif section == "Engine Version" and version:
            self._state = replace(self._state, versions=self._state.versions | {version[1].lower(): version[2]})

    def _block(self, lines: list[str], first: int) -> Iterator[PageRun]:
        text = "\n".join(line.strip() for line in lines)
        if FIRST_LABEL in text:
            yield from self._results(lines, first)
        elif text.startswith("dataset_name:"):
            self._profiles[self._headings[max(self._headings)]] = dict(
                line.split(": ", 1) for line in text.splitlines() if ": " in line
            )
        elif any(name in text for name in COMMANDS):
            command = _one_line(text)
            if self._headings.get(2) == "Conclusion":
                self._state = replace(self._state, recommended=command)
            elif self._headings.get(2) == "Experiment Results":
                self._state = replace(self._state, command=command)
        elif text.startswith("--"):
            self._state = replace(self._state, command=_one_line(text))

    def _results(self, lines: list[str], first: int) -> Iterator[PageRun]:
        comment, figures, start = "", dict[str, float](), first
        for offset, line in enumerate([*lines, FIRST_LABEL]):
            if FIRST_LABEL in line:
                if figures:
                    reference = f"{self._state.reference}:{start}"
                    profile = self._profiles.get(self._profile_name(), {})
                    yield replace(self._state, reference=reference, comment=comment, profile=profile, figures=figures)
                    comment = next(
                        (text for text in lines[start - first + 1 : offset] if text.strip()[:2] == "# "), ""
                    )
                figures, start = {}, first + offset
                comment = comment.strip("# ")
            match = _FIGURE.fullmatch(line)
            if match:
                figures[match[1]] = float(match[2])
            elif line.strip().startswith("# ") and not figures:
                comment = line.strip("# ")

    def _profile_name(self) -> str:
        heading = self._headings[max(self._headings)].lower()
        rate = heading.removeprefix("rate ")
        names = [n for n in self._profiles if heading.startswith(n.lower()) or n.lower().endswith(f" {rate}rps")]
        return self._profile or max(names, key=len, default="")


def _one_line(text: str) -> str:
    parts = [line.rstrip("\\").strip() for line in text.splitlines() if not line.startswith("#")]
    return " ".join(part for part in parts if part)
