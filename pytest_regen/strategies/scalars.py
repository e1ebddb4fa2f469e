"""Strings and numbers to test with: limits, and what code that is nearly right gets wrong.

Only values that every reading of the document allows: a length counts the same in characters and
in UTF-16, a multiple is one in floats, too. A type is to be tried by them, not the libraries below.
"""

import random
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Final

from pytest_regen.strategies.patterns import is_match, matching

MAX_EXACT: Final = 2**53 - 1
"""The greatest integer up to which doubles have all: what JSON carries between any two programs."""
_URIS: Final = ("https://example.com/a?b=c#d", "urn:isbn:0451450523", "http://example.com/%C3%A9")
_BASE64: Final = ("aGVsbG8=", "", "AP8Q", "+/+/")
TEXT_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": (
        "2024-02-29T12:34:56Z",
        "2023-12-31T23:59:59+05:30",
        "1999-12-31T23:59:59.123456-08:00",
        "2038-01-19T03:14:08.5Z",
    ),
    "date": ("2024-02-29", "1999-12-31", "2000-01-01", "2100-12-31"),
    "time": ("12:34:56Z", "23:59:59+05:30", "00:00:00Z", "06:07:08.123456-08:00"),
    "duration": ("P1DT2H3M4S", "PT36M", "PT0.5S", "P3D"),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"),
    "email": ("a@example.com", "First.Last+tag@sub.example.org"),
    "hostname": ("example.com", "localhost", "a-1.example.org"),
    "ipv4": ("192.0.2.1", "127.0.0.1", "255.255.255.255"),
    "ipv6": ("2001:db8::1", "::", "fe80::1"),
    **dict.fromkeys(("uri", "url"), _URIS),
    **dict.fromkeys(("byte", "base64"), _BASE64),
    "decimal": ("12.50", "0", "-0.001", "1234567890123456789.0123456789", "1.10"),
    "int32": ("0", "-1", "2147483647", "-2147483648"),
    "int64": ("0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"),
    "uint64": ("0", "1", "9007199254740993", "18446744073709551615"),
    "regex": ("^a+$", "[0-9]{2,}"),
}
"""Strings of each format, the plainest first. Nothing that the format lets be written in another
way: a UUID in capitals comes back in small letters, and is the same UUID."""

_COUNTED: Final = {
    "date": "{year}-{month:02}-{day:02}",
    "date-time": "{year}-{month:02}-{day:02}T{day:02}:{second:02}:{month:02}.{day:03}Z",
    "uuid": "{hex:08x}-{number:04x}-4{day:03x}-8{month:03x}-{hex:012x}",
    "decimal": "{hex}.{day:02}",
    "email": "user{number}@example.com",
    **dict.fromkeys(("uri", "url"), "https://example.com/items/{number}?page={day}"),
}
"""More strings of formats, one for each number: small objects need as many values as instances."""


_TEXTS: Final = (
    "a",
    "",
    "Zoë",
    " padded ",
    "12.50",
    "null",
    "2024-02-29",
    "a B\tc\n",
    "\"quoted\" \\ 'it' </script>",
    "名前",
    "👩‍🚀😀",
    "e\u0301",
    "x" * 300,
)
_ALPHABETS: Final = (
    string.ascii_lowercase,
    string.printable[:95],
    "äßñøe\u0301Жδ中あ𝄞😀\u200d\u00a0",
)
_RANDOM: Final = 120
_DRAWN: Final = 150
"""Strings that hypothesis draws for a pattern."""
_MAX_LENGTH: Final = 2000
"""Longer limits are not gone to: what is wrong with a limit shows long before."""


def dice_of(seed: object) -> random.Random:
    """Return what throws the same again for the same seed."""
    return random.Random(str(seed))  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class Texts:
    """What the keywords of a string come to, all parts of a schema taken together."""

    shortest: int = 0
    longest: int | None = None
    patterns: tuple[str, ...] = ()
    format: str | None = None

    def values(self) -> Iterator[str]:
        """Yield strings, the plainest first; some may not be allowed."""
        if self.patterns:
            fitting = []
            for drawn in matching(self.patterns, _DRAWN * len(self.patterns)):
                # What may match as well, because no pattern is drawn from with a length in mind.
                texts = [drawn]
                if 0 < len(drawn) < self.shortest <= _MAX_LENGTH:
                    texts.append((drawn * self.shortest)[: self.shortest])
                    texts.append(drawn.ljust(self.shortest, drawn[-1]))
                    texts.append(drawn.rjust(self.shortest, drawn[0]))
                elif self.longest is not None:
                    texts.append(drawn[: self.longest])
                fitting += [
                    text
                    for text in texts
                    if self.fits(text) and all(is_match(pattern, text) for pattern in self.patterns)
                ]
            plain = sorted(fitting, key=lambda text: (not text.isprintable(), not text.isascii()))
            yield from dict.fromkeys(plain)
        elif self.format is not None and self.format in TEXT_FORMATS:
            yield from TEXT_FORMATS[self.format]
            for number in range(_RANDOM) if self.format in _COUNTED else ():
                yield _COUNTED[self.format].format(
                    number=number,
                    year=1970 + number,
                    month=number % 12 + 1,
                    day=number % 23 + 1,
                    second=number * 7 % 60,
                    hex=number * 7_919_017,
                )
        else:
            longer = (text.ljust(min(self.shortest, _MAX_LENGTH), "x") for text in _TEXTS)
            yield from filter(self.fits, longer)
            for length in {self.shortest, self.longest or 0}:
                if length <= _MAX_LENGTH:
                    yield (string.ascii_letters * (length // 52 + 1))[:length]
            yield from self._random()

    def fits(self, text: str) -> bool:
        """Return whether the length is allowed, however it is counted."""
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2
        return self.shortest <= len(text) and (self.longest is None or units <= self.longest)

    def _random(self) -> Iterator[str]:
        dice = dice_of(f"{self.shortest} {self.longest}")
        top = max(24, self.shortest * 2)
        top = top if self.longest is None else max(min(top, self.longest), self.shortest)
        for number in range(_RANDOM if top <= 2 * _MAX_LENGTH else 0):
            letters = _ALPHABETS[number % len(_ALPHABETS)]
            text = "".join(dice.choices(letters, k=dice.randint(self.shortest, top)))
            if self.fits(text):
                yield text


_PLAIN: Final = (-1, 2, 7, 10, 42, 100, 255, 65_536, -1000, 2**31, -(2**31) - 1)
_FRACTIONS: Final = (0.25, -0.1, 0.1, 1.0, 12.5, 99.99, 1e-7, 123456.789, 3.0)
_PRECISE: Final = (0.1 + 0.2, 1234567.890123, MAX_EXACT, -MAX_EXACT)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the keywords of a number come to, all parts of a schema taken together."""

    is_integer: bool = False
    low: int | float | None = None
    high: int | float | None = None
    excluded: frozenset[int | float] = frozenset()
    """Limits that are not allowed themselves."""
    format: str | None = None

    def values(self) -> Iterator[int | float]:
        """Yield numbers, the plainest first; some may not be allowed."""
        edge = 1 if self.is_integer else 0.5
        low = () if self.low is None else (self.low, self.low + edge, self.low + 1)
        high = () if self.high is None else (self.high, self.high - edge, self.high - 1)
        fractions = () if self.is_integer else _FRACTIONS
        # Not for a float, because it holds seven digits.
        precise = () if self.format == "float" else _PRECISE
        ends = (1.7976931348623157e308, 5e-324) if self.format == "double" else ()
        chosen = (1, edge, 0, *low, *high, *_PLAIN, *fractions, *precise, *ends)
        return filter(self.fits, chain(chosen, self._random()))

    def fits(self, value: float) -> bool:
        """Return whether a number is within the limits."""
        if not isfinite(value) or (self.is_integer and value != int(value)):
            return False
        is_high_enough = self.low is None or value >= self.low
        is_low_enough = self.high is None or value <= self.high
        return is_high_enough and is_low_enough and value not in self.excluded

    def _random(self) -> Iterator[int | float]:
        dice = dice_of(f"{self.low} {self.high}")
        bottom = self.low if self.low is not None else (self.high or 0) - 1000
        top = self.high if self.high is not None else bottom + 2000
        for _ in range(_RANDOM):
            # Few digits: a number that comes back another shows why.
            value = bottom + (top - bottom) * dice.random()
            yield int(value) if self.is_integer or not isfinite(value) else round(value, 3)
