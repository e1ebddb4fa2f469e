"""Strings and numbers to test with: limits, and what code that is nearly right gets wrong.

Only values that every reading of the document allows: a length counts the same in characters and
in UTF-16, a multiple is one in floats, too. A type is to be tried by them, not the libraries below.
"""

import random
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Final
from uuid import UUID

from pytest_regen.strategies.patterns import matching, readings

MAX_EXACT: Final = 2**53 - 1
"""The greatest integer up to which doubles have all: what JSON carries between any two programs."""
_URIS: Final = (
    "https://example.com/a?b=c#d",
    "http://example.com",
    "urn:isbn:0451450523",
    "https://example.com/%C3%A9/x%20y",
)
_BASE64: Final = ("aGVsbG8=", "", "AP8Q", "+/+/")
TEXT_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "date-time": (
        "2024-02-29T12:34:56Z",
        "2023-12-31T23:59:59+05:30",
        "1999-12-31T23:59:59.123456-08:00",
        "2001-01-01T00:00:00+00:00",
        "2038-01-19T03:14:08.5Z",
        "1969-07-20T20:17:40.001-04:00",
        "2100-06-15T06:00:00+14:00",
    ),
    "date": ("2024-02-29", "1999-12-31", "2000-01-01", "1969-07-20", "2100-12-31"),
    "time": ("12:34:56Z", "23:59:59+05:30", "00:00:00Z", "06:07:08.123456-08:00"),
    "duration": ("P1DT2H3M4S", "PT36M", "PT0.5S", "P3D"),
    "uuid": (
        "123e4567-e89b-42d3-a456-426614174000",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-4fff-bfff-ffffffffffff",
    ),
    "email": ("a@example.com", "first.last+tag@sub.example.org"),
    "hostname": ("example.com", "localhost", "a-1.example.org"),
    "ipv4": ("192.0.2.1", "0.0.0.0", "255.255.255.255"),  # noqa: S104 - nothing is bound
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

_TEXTS: Final = (
    "a",
    "",
    "Zoë",
    " padded ",
    "0",
    "12.50",
    "true",
    "null",
    "2024-02-29",
    "a b\tc\n",
    "\"quoted\" \\ 'it' </script>",
    "名前",
    "👩‍🚀😀",
    "e\u0301",
    "UPPER lower",
    "x" * 300,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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
            yield from self._matching()
        elif self.format in TEXT_FORMATS:
            yield from TEXT_FORMATS[self.format]
            yield from _random_of(self.format)
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

    def _matching(self) -> list[str]:
        """Return strings that the patterns allow, as hypothesis finds them, the plainest first."""
        fitting = [
            text
            for drawn in matching(self.patterns, _DRAWN * len(self.patterns))
            for text in dict.fromkeys((drawn, *self._resized(drawn)))
            if self.fits(text) and all(all(readings(each, text)) for each in self.patterns)
        ]
        plain = sorted(fitting, key=lambda text: (not text.isprintable(), not text.isascii()))
        return list(dict.fromkeys(plain))

    def _resized(self, text: str) -> Iterator[str]:
        """Yield what may match as well, and is long enough, and no longer than it may be."""
        if 0 < len(text) < self.shortest <= _MAX_LENGTH:
            yield (text * self.shortest)[: self.shortest]
            yield text.ljust(self.shortest, text[-1])
            yield text.rjust(self.shortest, text[0])
        elif self.longest is not None:
            yield text[: self.longest]

    def _random(self) -> Iterator[str]:
        dice = random.Random(f"{self.shortest} {self.longest}")  # noqa: S311 - to be the same again
        top = max(24, self.shortest * 2)
        top = top if self.longest is None else max(min(top, self.longest), self.shortest)
        for number in range(_RANDOM if top <= 2 * _MAX_LENGTH else 0):
            letters = _ALPHABETS[number % len(_ALPHABETS)]
            text = "".join(dice.choices(letters, k=dice.randint(self.shortest, top)))
            if self.fits(text):
                yield text


def _random_of(name: str) -> Iterator[str]:
    """Yield strings of a format; nothing where the known ones are all there is to show."""
    dice = random.Random(name)  # noqa: S311 - to be the same again
    for number in range(_RANDOM):
        moment = _EPOCH + timedelta(seconds=dice.randrange(-(2**31), 2**32))
        match name:
            case "date-time":
                zone = timezone(timedelta(minutes=dice.choice((0, 0, 60, 330, -480))))
                fraction = dice.choice((0, 0, 500_000, 123_000, 7))
                written = moment.replace(microsecond=fraction).astimezone(zone).isoformat()
                yield written.replace("+00:00", "Z")
            case "date":
                yield moment.date().isoformat()
            case "time":
                yield moment.time().isoformat() + "Z"
            case "uuid":
                yield str(UUID(int=dice.getrandbits(128), version=4))
            case "decimal":
                yield f"{dice.randrange(10**6)}.{dice.randrange(100):02}"
            case "int32" | "int64" | "uint64":
                yield str(dice.randrange(2**31))
            case "email":
                yield f"user{number}@example.com"
            case "uri" | "url":
                yield f"https://example.com/items/{number}?page={dice.randrange(100)}"
            case _:
                return


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the keywords of a number come to, all parts of a schema taken together."""

    is_integer: bool = False
    low: int | float | None = None
    high: int | float | None = None
    excluded: frozenset[int | float] = frozenset()
    """Limits that are not allowed themselves."""
    steps: tuple[int | float, ...] = ()
    """``multipleOf``."""
    format: str | None = None

    def values(self) -> Iterator[int | float]:
        """Yield numbers, the plainest first; some may not be allowed."""
        return filter(self.fits, self._multiples() if self.steps else self._candidates())

    def fits(self, value: float) -> bool:
        """Return whether a number is within the limits."""
        if not isfinite(value) or (self.is_integer and value != int(value)):
            return False
        is_within = (self.low is None or value >= self.low) and (
            self.high is None or value <= self.high
        )
        return (
            is_within
            and value not in self.excluded
            and all(_is_multiple(value, step) for step in self.steps)
        )

    def _candidates(self) -> Iterator[int | float]:
        edge = 1 if self.is_integer else 0.5
        yield from (1, edge, 0)
        if self.low is not None:
            yield from (self.low, self.low + edge, self.low + 1)
        if self.high is not None:
            yield from (self.high, self.high - edge, self.high - 1)
        yield from (-1, 2, 7, 42, 255, 65_536, -1000)
        if not self.is_integer:
            yield from (-0.1, 0.1, 1.0, 12.5, 99.99, 1e-7, 123456.789, 3.0)
        if not self.is_integer and self.format != "float":
            yield from (0.1 + 0.2, 1234567.890123)
        if self.format == "double":
            yield from (1.7976931348623157e308, 5e-324)
        yield from (2**31, -(2**31) - 1)
        if self.format != "float":
            yield from (MAX_EXACT, -MAX_EXACT)
        yield from self._random()

    def _random(self) -> Iterator[int | float]:
        dice = random.Random(f"{self.low} {self.high}")  # noqa: S311 - to be the same again
        bottom = self.low if self.low is not None else (self.high or 0) - 1000
        top = self.high if self.high is not None else bottom + 2000
        for _ in range(_RANDOM):
            # Few digits: a number that comes back another shows why.
            value = bottom + (top - bottom) * dice.random()
            yield int(value) if self.is_integer or not isfinite(value) else round(value, 3)

    def _multiples(self) -> Iterator[int | float]:
        step = max(Decimal(str(step)) for step in self.steps)
        limits = [limit for limit in (self.low, self.high) if limit is not None]
        bases = [Decimal(0), *(Decimal(str(limit)) // step for limit in limits)]
        for offset in (1, 0, 2, -1, 3, 10, 7, -2, 100, 12345):
            for base in bases:
                value = (base + offset) * step
                yield int(value) if value == value.to_integral_value() else float(value)


def _is_multiple(value: float, step: float) -> bool:
    """Return whether a number is a multiple as it is written, and in floats as well."""
    is_written = Fraction(str(value)) % Fraction(str(step)) == 0
    return is_written and (isinstance(step, int) or (value / step).is_integer())
