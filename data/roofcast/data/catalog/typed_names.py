"""What people type for a name: its words in any order and spelling, if they mean one entry of the catalogue.

A word is a number with its unit or a run of letters, so that ``qwen 3 32b`` has the words of Qwen3-32B and
``rtx4090`` those of RTX 4090. Names in other characters than ASCII have none, so that no look-alike means another.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_WORD: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*(?:[a-z]+)?|[a-z]+", re.ASCII)
_VARIANT: Final = re.compile(r"(?<=[0-9])(?=(?:ti|super|xtx?|gre)\b)", re.ASCII)
_MEMORY: Final = re.compile(r"[0-9]+gi?b?", re.ASCII)
_DISTINCT: Final = re.compile(r".*[0-9].*|[a-z]{4,}", re.ASCII)
_HOUSING: Final = re.compile(
    r"\b(?:mac ?book(?: (?:pro|air))?|mac (?:studio|mini|pro)|i ?mac|hgx|dgx)\b", re.I | re.ASCII
)

MAX_NAME: Final = 100
"""Longest name that is compared by its words."""

PLAIN_WORDS: Final = frozenset({
    "nvidia", "amd", "intel", "apple", "google", "aws", "huawei", "tenstorrent", "geforce", "rtx", "gtx", "radeon",
    "rx", "tesla", "instinct", "arc", "tpu", "gaudi", "instruct", "it", "chat", "hf", "base", "v", "meta",
})  # fmt: skip
"""Words of a name that tell it from no other of its line: makers, brands, and the usual tuning of a model."""


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name; none if it is long or in other characters than ASCII.

    Examples
    --------
    >>> sorted(words_of("RTX4090 24G")), sorted(words_of("Qwen3-30B-A3B"))
    (['24gb', '4090', 'rtx'], ['3', '30b', '3b', 'a', 'qwen'])
    """
    if len(name) > MAX_NAME or not name.isascii():
        return frozenset()
    words = _WORD.findall(_VARIANT.sub(" ", name.lower()))
    return frozenset(f"{word.rstrip('gib')}gb" if _MEMORY.fullmatch(word) else word for word in words)


class WordIndex:
    """Entries of a catalogue by the words of their names.

    `names`: other names of each entry by its id. `is_numbered`: whether only names with a long word, or a number
    besides a memory size, mean an entry, as those of accelerators do.
    """

    def __init__(self, names: Mapping[str, Iterable[str]], *, is_numbered: bool) -> None:
        self._own = {id_: words_of(id_) for id_ in names}
        self._others = {id_: [*map(words_of, others)] for id_, others in names.items()}
        self._is_numbered = is_numbered

    def matches(self, name: str) -> list[str]:
        """Return the ids that have all words of a name, the shortest first; without any, those with such a name.

        What houses an accelerator counts only if it is part of the accelerator's name, as in DGX Spark.
        """
        words = words_of(name)
        distinct = {word for word in words - PLAIN_WORDS if _DISTINCT.fullmatch(word) and not _MEMORY.fullmatch(word)}
        if not words - PLAIN_WORDS or (self._is_numbered and not distinct):
            return []
        own = [id_ for id_, known in self._own.items() if self._has(known, words)]
        other = [id_ for id_, sets in self._others.items() if any(self._has(known, words) for known in sets)]
        bare = _HOUSING.sub(" ", name) if self._is_numbered else name
        if not own and not other and bare != name:
            return self.matches(bare)
        return sorted(own or other, key=lambda id_: (len(id_), id_))

    def meaning(self, name: str) -> list[str]:
        """Return the id that a name means, or several if it is ambiguous; none if it means none.

        It means the one of which it has all words of a name, plain words apart; else of several matches the one whose
        other words are plain, or of these the one without others.
        """
        matches, words = self.matches(name), words_of(_HOUSING.sub(" ", name) if self._is_numbered else name)
        named = [id_ for id_ in matches if any(self._equals(known, words) for known in self._others[id_])]
        plain = [id_ for id_ in matches if not _rest(id_, words) - PLAIN_WORDS]
        exact = [id_ for id_ in plain if not _rest(id_, words)]
        return next((one for one in (plain, exact, named) if len(one) == 1), matches)

    def _has(self, known: frozenset[str], words: frozenset[str]) -> bool:
        """Return whether a name has these words; of an accelerator, a number may be the size of its memory."""
        may_be_memory = self._is_numbered and any(map(_DISTINCT.fullmatch, words & known))
        return all(word in known or (may_be_memory and f"{word}gb" in known) for word in words)

    def _equals(self, known: frozenset[str], words: frozenset[str]) -> bool:
        own = words - PLAIN_WORDS
        return len(known - PLAIN_WORDS) == len(own) and self._has(known, own)


def _rest(id_: str, words: frozenset[str]) -> frozenset[str]:
    own = words_of(id_.rpartition("/")[2])
    return frozenset(word for word in own - words if not _MEMORY.fullmatch(word))
