"""Suspicions about data sheets of accelerators: sparse peaks taken for dense, numbers out of family."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from roofcast.data import units
from roofcast.data.catalog import accelerator_families as usual
from roofcast.data.specs import AcceleratorSpec

_RATIO_TOLERANCE: Final = 0.06
_LINK_TOLERANCE: Final = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One suspicion about one number; `reason` says why it is right all the same, if that is known."""

    accelerator: str
    rule: str
    field: str
    problem: str
    reason: str = ""

    def __str__(self) -> str:
        cure = f" (known: {self.reason})" if self.reason else ""
        return f"{self.accelerator}: {self.field}: {self.problem}{cure}"


def lint_accelerators(
    specs: Iterable[AcceleratorSpec], exceptions: Mapping[tuple[str, str], str] = usual.EXCEPTIONS
) -> list[Finding]:
    """Return what looks wrong in data sheets; a suspicion, never a proof.

    Parameters
    ----------
    specs
        The data sheets.
    exceptions
        Id of a part and rule to the reason why the part is right all the same.

    Returns
    -------
    Findings in the order of the specs; those with a `reason` are explained.

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
        dataclasses.replace(finding, reason=exceptions.get((finding.accelerator, finding.rule), ""))
        for spec in specs
        for check in (_peak_ratios, _years, _memory, _power, _balance, _link, _cache)
        for finding in check(spec)
    ]


def _peak_ratios(spec: AcceleratorSpec) -> Iterator[Finding]:
    peaks = _peaks(spec)
    allowed = _half_ratios(spec)
    yield from _ratio(spec, peaks, "half", "fp32", allowed)
    for narrow, wide, ratios, geforce in usual.NARROW_RATIOS:
        yield from _ratio(spec, peaks, narrow, wide, geforce if "geforce" in spec.name.lower() else ratios)


def _peaks(spec: AcceleratorSpec) -> dict[str, float]:
    peaks: dict[str, float] = {str(name): peak for name, peak in spec.peak_flop_per_s.items()}
    half = peaks.get("bf16", peaks.get("fp16"))
    return peaks | {"half": half} if half else peaks


def _half_ratios(spec: AcceleratorSpec) -> tuple[float, ...]:
    about = f"{spec.name} {spec.memory_type}".lower()
    architecture = spec.architecture.lower()
    fitting = (ratios for family, mark, ratios in usual.HALF_OVER_FP32 if family in architecture and mark in about)
    return next(fitting, usual.UNKNOWN_RATIOS)


def _ratio(
    spec: AcceleratorSpec, peaks: Mapping[str, float], narrow: str, wide: str, allowed: tuple[float, ...]
) -> Iterator[Finding]:
    if narrow not in peaks or wide not in peaks:
        return
    ratio = peaks[narrow] / peaks[wide]
    if any(_is_near(ratio, a, _RATIO_TOLERANCE) for a in allowed):
        return
    is_sparse = any(_is_near(ratio, 2 * a, _RATIO_TOLERANCE) for a in allowed)
    hint = "; it is twice that, so it may be a sparse peak" if is_sparse else ""
    wanted = " or ".join(f"{a:g}" for a in allowed)
    field = next((p for p in ("bf16", "fp16") if p in peaks), narrow) if narrow == "half" else narrow
    yield Finding(
        spec.id,
        f"{narrow} over {wide}",
        f"peak_flop_per_s.{field}",
        f"is {ratio:.3g} times the peak in {'16 bits' if wide == 'half' else wide}, usual is {wanted}{hint}",
    )


def _is_near(value: float, wanted: float, tolerance: float) -> bool:
    return abs(value / wanted - 1) <= tolerance


def _years(spec: AcceleratorSpec) -> Iterator[Finding]:
    for precision, first in usual.FIRST_YEAR.items():
        if precision in _peaks(spec) and spec.year and spec.year < first:
            problem = f"no part of {spec.year} computes in {precision}; the first came in {first}"
            yield Finding(spec.id, "precision by year", f"peak_flop_per_s.{precision}", problem)


def _memory(spec: AcceleratorSpec) -> Iterator[Finding]:
    name = spec.memory_type.lower()
    word = next((w for w in usual.MEMORY_KINDS if w in name), "")
    if not word:
        return
    kind = usual.MEMORY_KINDS[word]
    gb_per_s = spec.bandwidth_byte_per_s / units.BYTE_PER_GB
    gib = spec.memory_byte / units.BYTE_PER_GIB
    read_per_s = spec.bandwidth_byte_per_s / spec.memory_byte
    bandwidth = _Suspect(spec.id, "bandwidth", "bandwidth_byte_per_s", f"GB/s of {word}")
    capacity = _Suspect(spec.id, "capacity", "memory_byte", f"GiB of {word}")
    reads = f"reads of the whole memory a second for {word}"
    yield from bandwidth.outside(gb_per_s, kind.gb_per_s)
    yield from capacity.outside(gib, kind.gib)
    yield from dataclasses.replace(bandwidth, rule="bandwidth over capacity", unit=reads).outside(
        read_per_s, kind.read_per_s
    )
    if spec.year and spec.year < kind.first_year:
        problem = f"{word} came in {kind.first_year}, the part in {spec.year}"
        yield Finding(spec.id, "memory by year", "memory_type", problem)


@dataclasses.dataclass(frozen=True, slots=True)
class _Suspect:
    accelerator: str
    rule: str
    field: str
    unit: str

    def outside(self, value: float, band: tuple[float, float]) -> Iterator[Finding]:
        """Yield the finding if the value lies outside the band."""
        low, high = band
        if not low <= value <= high:
            problem = f"is {value:.3g} {self.unit}, usual is {low:g} to {high:g}"
            yield Finding(self.accelerator, self.rule, self.field, problem)


def _power(spec: AcceleratorSpec) -> Iterator[Finding]:
    if not spec.tdp_w:
        return
    yield from _Suspect(spec.id, "power", "tdp_w", "W").outside(spec.tdp_w, usual.TDP_W)
    half = _peaks(spec).get("half")
    if half and spec.year:
        most = next((m for year, m in usual.FLOP_PER_J if spec.year <= year), usual.LATER_FLOP_PER_J)
        if half / spec.tdp_w > most:
            per_w = half / spec.tdp_w / units.FLOP_PER_TFLOP
            limit = most / units.FLOP_PER_TFLOP
            problem = f"is {per_w:.2g} TFLOP/s per watt in 16 bits; parts of {spec.year} reach {limit:g} at most"
            yield Finding(spec.id, "flop per joule", "tdp_w", problem)


def _balance(spec: AcceleratorSpec) -> Iterator[Finding]:
    peaks = _peaks(spec)
    peak = peaks.get("half", peaks.get("fp32", 0.0))
    ratio = spec.bandwidth_byte_per_s / peak
    suspect = _Suspect(spec.id, "byte per flop", "bandwidth_byte_per_s", "byte per FLOP")
    yield from suspect.outside(ratio, usual.BYTE_PER_FLOP)


def _link(spec: AcceleratorSpec) -> Iterator[Finding]:
    found = re.match(r"(nvlink|pcie)\s?(\d)(?:\s?x(\d+))?", spec.link.lower())
    gb_per_s = spec.link_bandwidth_byte_per_s / units.BYTE_PER_GB
    if found and found[1] + found[2] in usual.LINKS_GB_PER_S and not re.search("reduced|bridge", spec.link):
        expected = usual.LINKS_GB_PER_S[found[1] + found[2]] * int(found[3] or 16) / 16
        if not _is_near(gb_per_s, expected, _LINK_TOLERANCE):
            hint = "; it looks like one direction" if _is_near(2 * gb_per_s, expected, _LINK_TOLERANCE) else ""
            problem = f"is {gb_per_s:g} GB/s, {spec.link} has {expected:g} in both directions{hint}"
            yield Finding(spec.id, "link", "link_bandwidth_byte_per_s", problem)
    if found and found[1] == "nvlink" and spec.link_domain_size == 1:
        yield Finding(spec.id, "link domain", "link_domain_size", f"is 1, but {spec.link} connects several parts")
    if spec.link_bandwidth_byte_per_s > spec.bandwidth_byte_per_s:
        problem = "is more than the bandwidth of the memory"
        yield Finding(spec.id, "link over memory", "link_bandwidth_byte_per_s", problem)


def _cache(spec: AcceleratorSpec) -> Iterator[Finding]:
    if spec.l2_byte:
        suspect = _Suspect(spec.id, "cache", "l2_byte", "MiB")
        yield from suspect.outside(spec.l2_byte / units.BYTE_PER_MIB, usual.LAST_CACHE_MIB)
