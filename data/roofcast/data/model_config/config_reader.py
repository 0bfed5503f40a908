"""Reader of typed, bounded fields of a `config.json`; every error names the field."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

from roofcast.data.errors import InputError, shorten

HIGHEST: Final = 10_000_000
_LARGEST_LIST: Final = 10_000


class ConfigReader:
    """Reader of the fields of one or more mappings, each field under several names; the first match counts.

    A null value counts as absent and hides the default, as in the libraries that write these files.

    `layers`: mappings, the most specific first. `defaults`: values of fields that no mapping names. Raises
    `InputError` by every method that returns a value, if it is missing without a default, of another type or out of
    bounds.

    Examples
    --------
    >>> ConfigReader({"n_embd": 768}).count("hidden_size", "n_embd")
    768
    >>> ConfigReader({"n_embd": "768"}).count("hidden_size", "n_embd")
    Traceback (most recent call last):
    ...
    roofcast.data.errors.InputError: n_embd: must be a whole number, got '768'
    """

    def __init__(self, *layers: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        self._layers = layers
        self._defaults = defaults or {}
        self.read: set[str] = set()
        self.assumed: set[str] = set()

    def with_first(self, *layers: Mapping[str, Any]) -> Self:
        """Return a reader of the same fields, but for those of `layers`, which count first."""
        reader = type(self)(*layers, *self._layers, defaults=self._defaults)
        reader.read, reader.assumed = self.read, self.assumed
        return reader

    def unread(self) -> list[str]:
        """Return the names of the first mapping's fields that nobody asked for, but those of null, false and 0."""
        return [name for name, value in self._layers[0].items() if value and name not in self.read]

    def mapping(self) -> Mapping[str, Any]:
        """Return the first mapping as it is."""
        return self._layers[0]

    def holds_text(self, *names: str) -> bool:
        """Return whether the names have a text as their value, such as ``auto``."""
        match = next(self._matches(names), None)
        return match is not None and isinstance(match[1], str)

    def mentions(self, *names: str) -> bool:
        """Return whether any of the names occurs, be its value null, or has a default."""
        return any(name in layer for layer in (*self._layers, self._defaults) for name in names)

    def states(self, *names: str) -> bool:
        """Return whether any of the names has a value of its own, not a default."""
        return any(layer.get(name) is not None for layer in self._layers for name in names)

    def has(self, *names: str) -> bool:
        """Return whether any of the names has a value."""
        return next(self._matches(names), None) is not None

    def holds_list(self, *names: str) -> bool:
        """Return whether the names have a list as their value."""
        match = next(self._matches(names), None)
        return match is not None and isinstance(match[1], list)

    def per_layer(self, *names: str, n_layer: int, default: int | None = None, low: int = 1) -> list[int]:
        """Return a whole number for each layer, of a list or of one number."""
        if not self.holds_list(*names):
            return [self.count(*names, default=default, low=low)] * n_layer
        name, _ = self._first(names, None)
        values = [low if value is None else value for value in self._list(name)]
        if len(values) != n_layer:
            raise InputError(name, f"must hold a number for each of {n_layer} layers, got {len(values)}")
        return [ConfigReader({name: value}).count(name, low=low) for value in values]

    def count(self, *names: str, default: int | None = None, low: int = 1, high: int = HIGHEST) -> int:
        """Return a whole number within bounds."""
        name, value = self._first(names, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(name, f"must be a whole number, got {_short(value)}")
        if not low <= value <= high:
            raise InputError(name, f"must be between {low} and {high}, got {_short(value)}")
        return value

    def count_or_none(self, *names: str, high: int = HIGHEST) -> int:
        """Return a whole number, 0 if absent."""
        return self.count(*names, default=0, low=0, high=high)

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return a boolean."""
        name, value = self._first(names, default)
        if not isinstance(value, bool):
            raise InputError(name, f"must be true or false, got {_short(value)}")
        return value

    def text(self, *names: str, default: str = "", longest: int = 200) -> str:
        """Return a text."""
        name, value = self._first(names, default)
        if not isinstance(value, str) or len(value) > longest:
            raise InputError(name, f"must be a text of up to {longest} characters, got {_short(value)}")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a number greater than 0."""
        _, value = self._first((name,), default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= HIGHEST:
            raise InputError(name, f"must be a number greater than 0, got {_short(value)}")
        return float(value)

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, empty if absent."""
        return self._list_of(name, str, "texts")

    def indices(self, name: str) -> set[int]:
        """Return the distinct whole numbers of a list, empty if absent."""
        return set(self.numbers(name))

    def numbers(self, name: str) -> list[int]:
        """Return the whole numbers of a list, empty if absent."""
        return self._list_of(name, int, "whole numbers")

    def objects(self, name: str) -> list[Mapping[str, Any]]:
        """Return a list of nested mappings, empty if absent."""
        return self._list_of(name, Mapping, "objects")

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a nested mapping, empty if absent."""
        _, value = self._first((name,), {})
        if not isinstance(value, Mapping):
            raise InputError(name, f"must be an object, got {_short(value)}")
        return value

    def _list_of(self, name: str, kind: type, kinds: str) -> list[Any]:
        value = self._list(name)
        if not all(isinstance(entry, kind) and not isinstance(entry, bool) for entry in value):
            raise InputError(name, f"must be a list of {kinds}, got {_short(value)}")
        return value

    def _list(self, name: str) -> list[Any]:
        _, value = self._first((name,), [])
        if not isinstance(value, list) or len(value) > _LARGEST_LIST:
            raise InputError(name, f"must be a list of up to {_LARGEST_LIST} entries, got {_short(value)}")
        return value

    def _matches(self, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        self.read.update(names)
        for layer in self._layers:
            for name in names:
                if layer.get(name) is not None:
                    yield name, layer[name]
        if not any(name in layer for layer in self._layers for name in names):
            for name in names:
                if self._defaults.get(name) is not None:
                    self.assumed.add(name)
                    yield name, self._defaults[name]

    def _first(self, names: tuple[str, ...], default: object) -> tuple[str, Any]:
        match = next(self._matches(names), None)
        if match is not None:
            return match
        if default is None:
            others = f" (also read as {', '.join(names[1:])})" if names[1:] else ""
            raise InputError(names[0], f"is missing{others}; add it to the config")
        return names[0], default


def _short(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        return f"a {'list' if not isinstance(value, Mapping) else 'mapping'} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    return shorten(value)
