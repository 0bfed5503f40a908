"""Linter of accelerator data sheets: wrong units are refused; sparse peaks and unusual numbers are findings."""

import dataclasses
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final

from roofcast.data import units
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec

USUAL: Final[Mapping[str, Any]] = tomllib.loads(
    (resources.files("roofcast.data.catalog") / "usual_numbers.toml").read_text(encoding="utf-8")
)
"""Usual numbers of accelerators, and exceptions."""

_RATIO_TOLERANCE: Final = 0.06
_LINK_TOLERANCE: Final = 0.05


MAX_UNIT_FACTOR: Final = 10.0
"""Largest factor below the minimum, or above the maximum, of the known accelerators."""

SHEET_NUMBERS: Final[Mapping[str, Callable[[AcceleratorSpec], list[float]]]] = {
    "memory_gib": lambda s: [s.memory_byte / units.BYTE_PER_GIB],
    "bandwidth_gb_per_s": lambda s: [s.bandwidth_byte_per_s / units.BYTE_PER_GB],
    "link_bandwidth_gb_per_s": lambda s: [s.link_bandwidth_byte_per_s / units.BYTE_PER_GB],
    "l2_mib": lambda s: [s.l2_byte / units.BYTE_PER_MIB] if s.l2_byte else [],
    "tdp_w": lambda s: [s.tdp_w] if s.tdp_w else [],
    "peak_..._tflop_per_s": lambda s: [peak / units.FLOP_PER_TFLOP for peak in s.peak_flop_per_s.values()],
    "bandwidth_gb_per_s over memory_gib": lambda s: [
        s.bandwidth_byte_per_s / units.BYTE_PER_GB / (s.memory_byte / units.BYTE_PER_GIB)
    ],
    "peak_..._tflop_per_s over bandwidth_gb_per_s": lambda s: [
        peak / units.FLOP_PER_TFLOP / (s.bandwidth_byte_per_s / units.BYTE_PER_GB)
        for peak in s.peak_flop_per_s.values()
    ],
}
"""Checked numbers and ratios, by the names and in the units of an accelerator's file."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """An unusual number; `reason` explains why it is right nevertheless, if that is known."""

    accelerator: str
    rule: str
    field: str
    problem: str
    reason: str = ""

    def __str__(self) -> str:
        cure = f" (known: {self.reason})" if self.reason else ""
        return f"{self.accelerator}: {self.field}: {self.problem}{cure}"


def lint_accelerators(
    specs: Iterable[AcceleratorSpec], exceptions: Mapping[str, Mapping[str, str]] = USUAL["exceptions"]
) -> list[Finding]:
    """Return the unusual numbers of data sheets, in the order of the specs; a finding is no proof of an error.

    `exceptions`: reason why a number is right nevertheless, by accelerator id and by rule.

    Examples
    --------
    An H100 with the sparse peak that its maker advertises first:

    >>> from roofcast.data.catalog import load_catalog
    >>> h100 = load_catalog().accelerator("h100-sxm-80gb")
    >>> sparse = h100.model_copy(update={"peak_flop_per_s": {"fp32": 66.9e12, "bf16": 1979e12}})
    >>> [finding.rule for finding in lint_accelerators([sparse])]
    ['half over fp32', 'flop per joule']
    """
    return [
        dataclasses.replace(finding, reason=exceptions.get(finding.accelerator, {}).get(finding.rule, ""))
        for spec in specs
        for check in (_peak_ratios, _years, _memory, _power, _balance, _link, _cache)
        for finding in check(spec)
    ]


def check_sheet_units(spec: AcceleratorSpec, known: Iterable[AcceleratorSpec]) -> None:
    """Refuse an accelerator with a number in a wrong unit: far outside the range of the known accelerators.

    Numbers that are unusual but possible are findings of `lint_accelerators`.

    Raises `InputError` if a number, or the ratio of two, is outside the range by more than `MAX_UNIT_FACTOR`.

    Examples
    --------
    TB/s in the place of GB/s:

    >>> from roofcast.data.catalog import load_catalog
    >>> known = load_catalog().accelerators
    >>> h100 = known["nvidia-h100-sxm-80gb"]
    >>> check_sheet_units(h100, known.values())
    >>> check_sheet_units(h100.model_copy(update={"bandwidth_byte_per_s": 3.35e9}), known.values())
    Traceback (most recent call last):
    ...
    roofcast.data.errors.InputError: bandwidth_gb_per_s: is 3.35, but 54 to 8000 in all known ones; correct the unit
    """
    known = tuple(known)
    for name, numbers in SHEET_NUMBERS.items():
        others = [number for other in known for number in numbers(other)]
        for number in numbers(spec):
            if not min(others) / MAX_UNIT_FACTOR <= number <= max(others) * MAX_UNIT_FACTOR:
                band = f"{min(others):.3g} to {max(others):.4g}"
                raise InputError(name, f"is {number:.3g}, but {band} in all known ones; correct the unit")


def _peak_ratios(spec: AcceleratorSpec) -> Iterator[Finding]:
    peaks = _peaks(spec)
    allowed = _half_ratios(spec)
    yield from _ratio(spec, peaks, "half", "fp32", allowed)
    for narrow, wide, ratios, geforce in USUAL["narrow_ratios"]:
        yield from _ratio(spec, peaks, narrow, wide, geforce if "geforce" in spec.name.lower() else ratios)


def _peaks(spec: AcceleratorSpec) -> dict[str, float]:
    peaks: dict[str, float] = {str(name): peak for name, peak in spec.peak_flop_per_s.items()}
    half = peaks.get("bf16", peaks.get("fp16"))
    return peaks | {"half": half} if half else peaks


def _half_ratios(spec: AcceleratorSpec) -> Sequence[float]:
    about = f"{spec.name} {spec.memory_type}".lower()
    architecture = spec.architecture.lower()
    known = USUAL["half_over_fp32"]
    matches = (ratios for family, mark, ratios in known if family in architecture and mark in about)
    return next(matches, USUAL["unknown_ratios"])


def _ratio(
    spec: AcceleratorSpec, peaks: Mapping[str, float], narrow: str, wide: str, allowed: Sequence[float]
) -> Iterator[Finding]:
    if narrow not in peaks or wide not in peaks:
        return
    ratio = peaks[narrow] / peaks[wide]
    if any(_is_near(ratio, a, _RATIO_TOLERANCE) for a in allowed):
        return
    is_sparse = any(_is_near(ratio, 2 * a, _RATIO_TOLERANCE) for a in allowed)
    hint = "; it is twice that, so it may be a sparse peak" if is_sparse else ""
    expected = " or ".join(f"{a:g}" for a in allowed)
    field = next((p for p in ("bf16", "fp16") if p in peaks), narrow) if narrow == "half" else narrow
    yield Finding(
        spec.id,
        f"{narrow} over {wide}",
        f"peak_flop_per_s.{field}",
        f"is {ratio:.3g} times the peak in {'16 bits' if wide == 'half' else wide}, usual is {expected}{hint}",
    )


def _is_near(value: float, target: float, tolerance: float) -> bool:
    return abs(value / target - 1) <= tolerance


def _years(spec: AcceleratorSpec) -> Iterator[Finding]:
    for precision, first in USUAL["first_year"].items():
        if precision in _peaks(spec) and spec.year and spec.year < first:
            problem = f"no part of {spec.year} computes in {precision}; the first came in {first}"
            yield Finding(spec.id, "precision by year", f"peak_flop_per_s.{precision}", problem)


def _memory(spec: AcceleratorSpec) -> Iterator[Finding]:
    name = spec.memory_type.lower()
    word = next((word for word in USUAL["memory_kinds"] if word in name), "")
    if not word:
        return
    kind = USUAL["memory_kinds"][word]
    gb_per_s = spec.bandwidth_byte_per_s / units.BYTE_PER_GB
    gib = spec.memory_byte / units.BYTE_PER_GIB
    per_s = spec.bandwidth_byte_per_s / spec.memory_byte
    reads = f"full memory reads per second for {word}"
    yield from _outside(spec, "bandwidth", "bandwidth_byte_per_s", (gb_per_s, f"GB/s of {word}"), kind["gb_per_s"])
    yield from _outside(spec, "capacity", "memory_byte", (gib, f"GiB of {word}"), kind["gib"])
    yield from _outside(spec, "bandwidth over capacity", "bandwidth_byte_per_s", (per_s, reads), kind["read_per_s"])
    if spec.year and spec.year < kind["first_year"]:
        problem = f"{word} came in {kind['first_year']}, the part in {spec.year}"
        yield Finding(spec.id, "memory by year", "memory_type", problem)


def _outside(
    spec: AcceleratorSpec, rule: str, field: str, number: tuple[float, str], band: Sequence[float]
) -> Iterator[Finding]:
    (value, unit), (low, high) = number, band
    if not low <= value <= high:
        yield Finding(spec.id, rule, field, f"is {value:.3g} {unit}, usual is {low:g} to {high:g}")


def _power(spec: AcceleratorSpec) -> Iterator[Finding]:
    if not spec.tdp_w:
        return
    yield from _outside(spec, "power", "tdp_w", (spec.tdp_w, "W"), USUAL["tdp_w"])
    half = _peaks(spec).get("half")
    if half and spec.year:
        most = next((m for year, m in USUAL["flop_per_j"] if spec.year <= year), USUAL["later_flop_per_j"])
        if half / spec.tdp_w > most:
            per_w = half / spec.tdp_w / units.FLOP_PER_TFLOP
            limit = most / units.FLOP_PER_TFLOP
            problem = f"is {per_w:.2g} TFLOP/s per watt in 16 bits; parts of {spec.year} reach {limit:g} at most"
            yield Finding(spec.id, "flop per joule", "tdp_w", problem)


def _balance(spec: AcceleratorSpec) -> Iterator[Finding]:
    peaks = _peaks(spec)
    peak = peaks.get("half", peaks.get("fp32", 0.0))
    ratio, band = spec.bandwidth_byte_per_s / peak, USUAL["byte_per_flop"]
    yield from _outside(spec, "byte per flop", "bandwidth_byte_per_s", (ratio, "byte per FLOP"), band)


def _link(spec: AcceleratorSpec) -> Iterator[Finding]:
    links: Mapping[str, float] = USUAL["links_gb_per_s"]
    match = re.match(r"(nvlink|pcie)\s?(\d)(?:\s?x(\d+))?", spec.link.lower())
    gb_per_s = spec.link_bandwidth_byte_per_s / units.BYTE_PER_GB
    if match and match[1] + match[2] in links and not re.search("reduced|bridge", spec.link):
        expected = links[match[1] + match[2]] * int(match[3] or 16) / 16
        if not _is_near(gb_per_s, expected, _LINK_TOLERANCE):
            hint = "; it looks like one direction" if _is_near(2 * gb_per_s, expected, _LINK_TOLERANCE) else ""
            problem = f"is {gb_per_s:g} GB/s, {spec.link} has {expected:g} in both directions{hint}"
            yield Finding(spec.id, "link", "link_bandwidth_byte_per_s", problem)
    if match and match[1] == "nvlink" and spec.link_domain_size == 1:
        yield Finding(spec.id, "link domain", "link_domain_size", f"is 1, but {spec.link} connects several parts")
    if spec.link_bandwidth_byte_per_s > spec.bandwidth_byte_per_s:
        problem = "is more than the bandwidth of the memory"
        yield Finding(spec.id, "link over memory", "link_bandwidth_byte_per_s", problem)


def _cache(spec: AcceleratorSpec) -> Iterator[Finding]:
    if spec.l2_byte:
        mib = spec.l2_byte / units.BYTE_PER_MIB
        yield from _outside(spec, "cache", "l2_byte", (mib, "MiB"), USUAL["last_cache_mib"])
