"""A small gazetteer, written by hand in ``places.txt``: cities, states and countries."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

LEVELS = ("city", "state", "country")


@dataclass(frozen=True)
class Place:
    """A city, a state or a country, with what it lies in; names stand from small to large."""

    names: tuple[str, ...]
    """Its own, then those of what it lies in."""
    codes: tuple[str, ...]
    """Of state and country: ISO 3166-2 after the hyphen, ISO 3166-1."""
    level: str
    also: tuple[str, ...] = ()
    """Other names by which it is looked for: `NYC`, `München`."""
    also_around: tuple[str, ...] = ()
    """Such names of what it lies in: `UK`."""

    @property
    def label(self) -> str:
        """How it is written as an answer: `Austin, TX`, `Texas, US`, `Paris, FR`, `France`."""
        beyond = self.codes if self.level == "city" else self.codes[1:]
        return ", ".join((self.names[0], *beyond[:1]))

    def as_json(self) -> dict[str, object]:
        """Return the place as a typed answer, and what the picker shows beside it."""
        city = self.names[0] if self.level == "city" else None
        state = self.names[-2] if len(self.codes) > 1 else None
        parts = {"city": city, "state": state, "country": self.names[-1]}
        answer = {"kind": "place", "label": self.label}
        answer |= {name: part for name, part in parts.items() if part is not None}
        return {"answer": answer, "name": self.names[0], "around": ", ".join(self.names[1:])}


class Gazetteer:
    """Places that can be searched by level.

    Args:
        text: countries at the margin, states indented below them, cities in lines that start with
            a hyphen; other names of a place follow it after slashes; `#` starts a comment line.
    """

    def __init__(self, text: str) -> None:
        self._words = [(place, _words_of(place)) for place in _read(text)]

    def search(self, query: str, level: str, limit: int = 8) -> list[Place]:
        """Return the places of a level that the words of ``query`` begin words of, best first."""
        words = fold(query).split()
        matches = [
            (not fold(place.names[0]).startswith(fold(query)), number, place)
            for number, (place, (names, all_words)) in enumerate(self._words)
            if place.level == level
            and any(name.startswith(word) for word in words for name in names)
            and all(any(name.startswith(word) for name in all_words) for word in words)
        ]
        return [place for *_, place in sorted(matches, key=lambda match: match[:2])[:limit]]


def fold(text: str) -> str:
    """Return text as it is compared: lower case, without accents, words apart by one blank."""
    spread = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(c for c in spread if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in bare.replace("'", "")).split())


def _words_of(place: Place) -> tuple[list[str], list[str]]:
    code = () if place.level == "city" else place.codes[:1]
    names = fold(" ".join((place.names[0], *place.also, *code))).split()
    around = fold(" ".join((*place.names[1:], *place.codes, *place.also_around))).split()
    return names, names + around


def _read(text: str) -> Iterator[Place]:
    country = state = Place((), (), "country")
    for line in text.splitlines():
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        if content.startswith("- "):
            for listed in content.removeprefix("- ").split(","):
                name, *also = (part.strip() for part in listed.split("/"))
                around = state.also + state.also_around
                yield Place((name, *state.names), state.codes, "city", tuple(also), around)
            continue
        code, _, names = content.partition(" ")
        name, *also = (part.strip() for part in names.split("/"))
        if line.startswith(" "):
            codes = (code, *country.codes)
            state = Place((name, *country.names), codes, "state", tuple(also), country.also)
        else:
            country = state = Place((name,), (code,), "country", tuple(also))
        yield state
