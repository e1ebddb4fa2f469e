"""A small gazetteer of our own: well-known cities, states and countries, and their search.

The list is written by hand, in ``places.txt``; a search goes by the beginnings of words, accents
and case aside.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Level = Literal["city", "state", "country"]


@dataclass(frozen=True, slots=True)
class Place:
    """A city, a state or a country, with what it lies in."""

    country: str
    country_code: str
    """ISO 3166-1, two letters."""
    state: str | None = None
    state_code: str | None = None
    """The part of ISO 3166-2 after the hyphen."""
    city: str | None = None
    also: tuple[str, ...] = ()
    """Other names by which it is looked for: `NYC`, `München`."""
    also_around: tuple[str, ...] = ()
    """Such names of what it lies in: `UK`."""

    @property
    def level(self) -> Level:
        """What kind of place it is."""
        if self.city is not None:
            return "city"
        return "country" if self.state is None else "state"

    @property
    def name(self) -> str:
        """The place's own name, without what it lies in."""
        return self.city or self.state or self.country

    @property
    def label(self) -> str:
        """How the place is written as an answer: `Austin, TX`, `Texas, US`, `Paris, FR`, `France`.

        No two places of the gazetteer share one.
        """
        if self.city is not None:
            return f"{self.city}, {self.state_code or self.country_code}"
        return self.country if self.state is None else f"{self.state}, {self.country_code}"

    @property
    def surroundings(self) -> str:
        """What it lies in, in words: `Texas, United States`; empty for a country."""
        if self.city is not None and self.state is not None:
            return f"{self.state}, {self.country}"
        return "" if self.level == "country" else self.country

    def as_json(self) -> dict[str, object]:
        """Return the place as the search endpoint answers it."""
        inside = self.state is not None
        return {
            "label": self.label,
            "level": self.level,
            "name": self.name,
            "surroundings": self.surroundings,
            "city": {"name": self.city} if self.city else None,
            "state": {"code": self.state_code, "name": self.state} if inside else None,
            "country": {"code": self.country_code, "name": self.country},
        }


def read_places(text: str) -> tuple[Place, ...]:
    """Return the places that a list names, in its order.

    Args:
        text: countries at the margin, states indented below them, cities in lines that start
            with a hyphen; other names of a place follow it after slashes; `#` starts a comment
            line.
    """
    return tuple(_places(text))


def _places(text: str) -> Iterator[Place]:
    country = state = Place("", "")
    for line in text.splitlines():
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        if content.startswith("- "):
            yield from _cities(content.removeprefix("- "), state)
            continue
        code, _, names = content.partition(" ")
        name, *also = _names(names)
        if line.startswith(" "):
            state = Place(
                country.country,
                country.country_code,
                name,
                code,
                also=tuple(also),
                also_around=country.also,
            )
        else:
            country = state = Place(name, code, also=tuple(also))
        yield state


def _cities(names: str, around: Place) -> Iterator[Place]:
    for listed in names.split(","):
        name, *also = _names(listed)
        yield Place(
            around.country,
            around.country_code,
            around.state,
            around.state_code,
            name,
            also=tuple(also),
            also_around=(*around.also, *around.also_around),
        )


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split("/")]


_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "\u0131": "i", "æ": "ae", "œ": "oe"})
_ORDER: dict[Level, int] = {"city": 0, "state": 1, "country": 2}


def fold(text: str) -> str:
    """Return text as it is compared: lower case, no accents, words separated by one space."""
    # Twice: what is taken apart may have capitals, and what is lowered may come apart.
    spread = text
    for _ in range(2):
        spread = unicodedata.normalize("NFKD", spread).casefold()
    bare = "".join(c for c in spread if not unicodedata.combining(c)).translate(_LETTERS)
    return " ".join("".join(c if c.isalnum() else " " for c in bare.replace("'", "")).split())


class Gazetteer:
    """Places that can be searched by level.

    Args:
        places: what it holds; earlier ones come first among equally good matches.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self.places = tuple(places)
        self._by_label = {place.label: place for place in self.places}
        self._entries = tuple((place, _Words(place)) for place in self.places)

    def search(
        self, query: str, *, level: Level | None = None, limit: int = 8
    ) -> tuple[Place, ...]:
        """Return the places whose words begin with the words of ``query``, the best first.

        Other names count like the first one: `NYC`, `München`, `USA`.

        Args:
            query: what a person typed; `austin`, `portland me`, `Zurich`.
            level: where given, only places of this level.
            limit: at most so many.
        """
        wanted = fold(query)
        if not wanted:
            return ()
        words = wanted.split()
        found = [
            (words_of.rank(wanted, words), _ORDER[place.level], number, place)
            for number, (place, words_of) in enumerate(self._entries)
            if level in {None, place.level} and words_of.match(words)
        ]
        return tuple(place for *_, place in sorted(found, key=lambda entry: entry[:3])[:limit])

    def by_label(self, label: str, *, level: Level | None = None) -> Place | None:
        """Return the place with this label, to the letter. A name alone means no place for sure."""
        found = self._by_label.get(label)
        return found if found is not None and level in {None, found.level} else None


class _Words:
    """The folded words of one place."""

    __slots__ = ("code", "name", "names", "own", "words")

    def __init__(self, place: Place) -> None:
        code = {"city": None, "state": place.state_code, "country": place.country_code}[place.level]
        self.name = fold(place.name)
        self.code = fold(code or "")
        self.names = (self.name, *map(fold, place.also))
        self.own = (*(word for name in self.names for word in name.split()), *self.code.split())
        around = (place.surroundings, place.state_code or "", place.country_code)
        beyond = (word for text in (*around, *place.also_around) for word in fold(text).split())
        self.words = (*self.own, *beyond)

    def match(self, wanted: Sequence[str]) -> bool:
        """Whether each wanted word begins a word of the place, and one of them begins its name."""
        return any(own.startswith(word) for word in wanted for own in self.own) and all(
            any(word.startswith(beginning) for word in self.words) for beginning in wanted
        )

    def rank(self, wanted: str, words: Sequence[str]) -> int:
        """Return how well it matches; less is better."""
        if wanted in {*self.names, self.code}:
            return 0
        if any(name.startswith(wanted) for name in self.names):
            return 1
        return 2 if any(name.startswith(words[0]) for name in self.names) else 3


@cache
def well_known() -> Gazetteer:
    """Return the gazetteer that ships with the package."""
    places = files("pytest_regen.server").joinpath("places.txt")
    return Gazetteer(read_places(places.read_text("utf-8")))
