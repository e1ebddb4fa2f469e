"""Strings and numbers to test with: limits, and what code that is nearly right gets wrong.

Only values that every reading of the document allows: a length counts the same in characters and
in UTF-16, a multiple is one in floats, too. A type is to be tried by them, not the libraries below.
"""

import random
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Final
from uuid import UUID

from pytest_regen.strategies.dialects import FORMAT_RANGES, is_multiple
from pytest_regen.strategies.matching import draw, texts_matching
from pytest_regen.strategies.patterns import agree

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
    "uri": _URIS,
    "url": _URIS,
    "byte": _BASE64,
    "base64": _BASE64,
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
    examples: tuple[str, ...] = ()
    """What the document itself gives; it may be wrong."""

    def values(self) -> Iterator[str]:
        """Yield strings, the plainest first; some may not be allowed."""
        if self.patterns:
            yield from (text for text in self.examples if self.fits(text))
            yield from _matching(self.patterns, self.shortest, self.longest)
        elif self.format is not None and self.format in TEXT_FORMATS:
            yield from TEXT_FORMATS[self.format]
            yield from self.examples
            yield from _random_of(self.format)
        else:
            yield from self._sized(_TEXTS)
            yield from self.examples
            yield from self._random()

    def _sized(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield texts, and texts of the least and of the greatest length."""
        for text in texts:
            if self.fits(text):
                yield text
            elif len(text) < self.shortest <= _MAX_LENGTH:
                yield self._grown(text)
        yield from (t for t in map(self._of_length, (self.shortest, self.longest)) if t is not None)

    def _of_length(self, length: int | None) -> str | None:
        if length is None or length > _MAX_LENGTH:
            return None
        return (string.ascii_letters * (length // 52 + 1))[:length]

    def _grown(self, text: str) -> str:
        return text + "x" * (self.shortest - len(text))

    def sizes_of(self, text: str) -> Iterator[str]:
        """Yield a text, or where it is too short or too long, what may match as well."""
        if self.fits(text) or not text:
            yield text
        elif len(text) < self.shortest <= _MAX_LENGTH:
            more = self.shortest - len(text)
            yield (text * self.shortest)[: self.shortest]
            yield text + text[-1] * more
            yield text[0] * more + text
        elif self.longest is not None:
            yield text[: self.longest]

    def fits(self, text: str) -> bool:
        """Return whether the length is allowed, however it is counted."""
        units = len(text.encode("utf-16-le", "surrogatepass")) // 2
        return self.shortest <= len(text) and (self.longest is None or units <= self.longest)

    def _random(self) -> Iterator[str]:
        dice = random.Random(f"{self.shortest} {self.longest}")  # noqa: S311 - to be the same again
        top = min(self.longest if self.longest is not None else 24, max(24, self.shortest * 2))
        top = max(top, self.shortest, 1)
        for number in range(_RANDOM):
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
                yield written.removesuffix("+00:00") + "Z" * written.endswith("+00:00")
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


@cache
def _matching(patterns: tuple[str, ...], shortest: int, longest: int | None) -> tuple[str, ...]:
    """Return strings that patterns allow, as hypothesis finds them, the plainest first."""
    limits = Texts(shortest, longest)
    found = draw(texts_matching(patterns), _DRAWN * len(patterns))
    fitting = [
        text
        for text in dict.fromkeys(each for text in found for each in limits.sizes_of(text))
        if limits.fits(text) and all(agree(pattern, text) for pattern in patterns)
    ]
    return tuple(sorted(fitting, key=lambda text: (not text.isprintable(), not text.isascii())))


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the keywords of a number come to, all parts of a schema taken together."""

    is_integer: bool = False
    least: int | float | None = None
    greatest: int | float | None = None
    is_above_least: bool = False
    """Whether ``least`` itself is not allowed."""
    is_below_greatest: bool = False
    steps: tuple[int | float, ...] = ()
    """``multipleOf``."""
    format: str | None = None
    examples: tuple[int | float, ...] = ()

    def values(self) -> Iterator[int | float]:
        """Yield numbers, the plainest first; some may not be allowed."""
        candidates = self._multiples() if self.steps else self._candidates()
        seen: set[tuple[type, int | float]] = set()
        for value in candidates:
            if (type(value), value) not in seen and self.fits(value):
                seen.add((type(value), value))
                yield value

    @property
    def limits(self) -> tuple[int | float | None, int | float | None]:
        """The least and the greatest number; ``None`` where there is no limit."""
        low, high = self.least, self.greatest
        known = FORMAT_RANGES.get(self.format or "")
        if known:
            low = known[0] if low is None else max(low, known[0])
            high = known[1] if high is None else min(high, known[1])
        return low, high

    def fits(self, value: float) -> bool:
        """Return whether a number is within the limits."""
        low, high = self.limits
        if not isfinite(value) or (self.is_integer and value != int(value)):
            return False
        is_high_enough = low is None or value > low or (value == low and not self.is_above_least)
        is_low_enough = (
            high is None or value < high or (value == high and not self.is_below_greatest)
        )
        return is_high_enough and is_low_enough and all(_is_multiple(value, s) for s in self.steps)

    def _candidates(self) -> Iterator[int | float]:
        low, high = self.limits
        edge = 1 if self.is_integer else 0.5
        yield from (1, 0) if self.is_integer else (1, 0.5, 0)
        if low is not None:
            yield from (low, low + edge, low + 1)
        if high is not None:
            yield from (high, high - edge, high - 1)
        yield from (-1, 2, 7, 42, 255, 65_536, -1000)
        if not self.is_integer:
            yield from (0.5, -0.1, 0.1, 1.0, 12.5, 99.99, 1e-7, 123456.789, 3.0)
            if self.format != "float":
                yield from (0.1 + 0.2, 1234567.890123)
            if self.format == "double":
                yield from (1.7976931348623157e308, 5e-324)
        yield from (2**31, -(2**31) - 1)
        if self.format != "float":
            yield from (MAX_EXACT, -MAX_EXACT)
        yield from self.examples
        yield from self._random(low, high)

    def _random(self, low: float | None, high: float | None) -> Iterator[int | float]:
        dice = random.Random(f"{low} {high}")  # noqa: S311 - to be the same again
        bottom = low if low is not None else -1000 if high is None else high - 1000
        top = high if high is not None else bottom + 2000
        for _ in range(_RANDOM):
            # Few digits: a number that comes back another shows why.
            value = bottom + (top - bottom) * dice.random()
            yield int(value) if self.is_integer or not isfinite(value) else round(value, 3)

    def _multiples(self) -> Iterator[int | float]:
        step = max(Decimal(str(step)) for step in self.steps)
        low, high = self.limits
        limits = [limit for limit in (low, high) if limit is not None and isfinite(limit)]
        bases = [Decimal(0), *(Decimal(str(limit)) // step for limit in limits)]
        for offset in (1, 0, 2, -1, 3, 10, 7, -2, 100, 12345):
            for base in bases:
                yield as_number((base + offset) * step)
        yield from self.examples


def as_number(value: Decimal) -> int | float:
    """Return a decimal as JSON has it: an integer where it is one."""
    return int(value) if value == value.to_integral_value() else float(value)


def _is_multiple(value: float, step: float) -> bool:
    """Return whether a number is a multiple as it is written, and in floats as well."""
    return is_multiple(value, step) and (isinstance(step, int) or (value / step).is_integer())
