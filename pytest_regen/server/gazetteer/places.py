"""A place, and the reader of the hand-written list of places."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["Level", "Place", "read_places"]

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
