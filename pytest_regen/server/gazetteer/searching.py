"""Search in a gazetteer: by the beginnings of words, accents and case aside."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from pytest_regen.server.gazetteer.places import Level, Place, read_places

__all__ = ["Gazetteer", "fold", "well_known"]

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

    def labelled(self, label: str, *, level: Level | None = None) -> Place | None:
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
    listed = files("pytest_regen.server.gazetteer").joinpath("places.txt")
    return Gazetteer(read_places(listed.read_text("utf-8")))
