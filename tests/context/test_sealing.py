"""Seals: what was sealed comes back unchanged, in its own conversation, in time, or not at all."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from context_values import LOCATION, context, wire
from tables import each

from pytest_regen.context import (
    Conversation,
    Sealer,
    SealPolicy,
    parse_context,
    require_seal,
)
from pytest_regen.errors import (
    SealError,
    SealExpiredError,
    SealKeyError,
    SealMissingError,
    SealMovedError,
    SealTamperedError,
    UsageError,
)

KEY = "only the tests of seals know this key"
OTHER = "and this one is known to them as well"
NOW = 1_767_916_800.0


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def sealer(keys: Mapping[str, bytes | str] | None = None, **options: Any) -> Sealer:
    return Sealer(keys or {"k1": KEY}, **{"clock": Clock(), **options})


def sealed(by: Sealer, what: Conversation[Any, Any], conversation: str = "c-1") -> str:
    return by.seal(what, conversation=conversation)


def test_a_seal_is_short_whatever_it_binds() -> None:
    """It fits in a form field, a header or an address, and shows nothing of what was said."""
    by = sealer()
    seal = sealed(by, context(), "😀" * 200)

    assert len(seal) < 400
    assert re.fullmatch(r"[\w.-]+", seal)
    by.unseal(seal, context(), conversation="😀" * 200)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"originalDescription": "something else"}, "original_description"),
        ({"questionsAsked": [LOCATION | {"question": "Which planet?"}]}, "questions_asked"),
        ({"inferredContext": {"detected_scope": "national"}}, "inferred_context"),
        ({"questionsAsked": [], "inferredContext": {}}, "questions_asked and inferred_context"),
    ],
)
def test_a_changed_context_is_refused(changed: dict[str, Any], named: str) -> None:
    by = sealer()

    with pytest.raises(SealTamperedError, match=f"{named} of the context"):
        by.unseal(sealed(by, context()), parse_context(wire() | changed), conversation="c-1")


def test_an_expired_seal_is_refused() -> None:
    """It is good to the last second, and not one longer; nor before it was made."""
    clock = Clock()
    by = sealer(max_age=60, clock=clock)
    seal = sealed(by, context())

    clock.now = NOW + 60
    by.unseal(seal, context(), conversation="c-1")
    for now in (NOW + 61, NOW - 120):
        clock.now = now
        with pytest.raises(SealExpiredError):
            by.unseal(seal, context(), conversation="c-1")


@each(
    ("keys", "conversation", "error"),
    [
        ({"k1": KEY}, "c-2", SealMovedError),
        ({"mine": KEY}, "c-1", SealKeyError),
        # Somebody gave the same id to another key.
        ({"k1": OTHER}, "c-1", SealTamperedError),
    ],
)
def test_a_seal_of_elsewhere_is_refused(
    keys: dict[str, str], conversation: str, error: type[SealError]
) -> None:
    """Of another conversation, or of another key."""
    seal = sealed(sealer(), context())

    with pytest.raises(error):
        sealer(keys).unseal(seal, context(), conversation=conversation)


def test_the_id_of_a_key_cannot_be_exchanged() -> None:
    both = sealer({"k1": KEY, "k2": KEY})

    with pytest.raises(SealTamperedError):
        both.unseal(sealed(both, context()).replace("k1", "k2", 1), context(), conversation="c-1")


def test_a_key_is_replaced_without_refusing_what_it_sealed() -> None:
    old = sealed(sealer({"k1": KEY}), context())
    by = sealer({"k2": OTHER, "k1": KEY})

    by.unseal(old, context(), conversation="c-1")
    assert sealed(by, context()).startswith("k2.")
    by.unseal(sealed(by, context()), context(), conversation="c-1")


@pytest.mark.parametrize("seal", ["", "k1", "k1...", "k1.x.y.z", "x" * 5_000, "k1.\ud800"])
def test_what_is_no_seal_is_refused(seal: str) -> None:
    with pytest.raises(SealError):
        sealer().unseal(seal, context(), conversation="c-1")


def test_another_spelling_of_a_seal_is_no_seal() -> None:
    """What base64 reads alike is not alike: padding, blanks, spare bits, the other alphabet."""
    by = sealer(max_age=60)
    seal = sealed(by, context())
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=\n \u00e9"
    others = [seal[:-1] + letter for letter in letters]
    others += [seal + more for more in ("=", "==", "===", "\n", "\r\n", " ", "!", "AAAA")]
    others += [seal[:at] + more + seal[at:] for more in "=\n -" for at in range(len(seal))]
    others += [seal.replace("-", "+"), seal.replace("_", "/")]

    accepted = []
    for other in {*others} - {seal}:
        with suppress(SealError):
            by.unseal(other, context(), conversation="c-1")
            accepted.append(other)
    assert accepted == []


def test_a_policy_is_kept() -> None:
    """With a key, a seal is required; without seals goes only who says so."""
    by = sealer()
    seal = sealed(by, context())

    require_seal(by, seal, context(), conversation="c-1")
    for nothing in (None, ""):
        with pytest.raises(SealMissingError):
            require_seal(by, nothing, context(), conversation="c-1")
    require_seal("off", None, context(), conversation="c-1")
    for wrong in (None, "", "OFF", False):
        policy: SealPolicy = wrong  # type: ignore[assignment]  # what a careless caller passes
        with pytest.raises(UsageError):
            require_seal(policy, seal, context(), conversation="c-1")


@each(
    "key",
    [
        bytes(32),
        "changeme" * 4,
        "abcdefghijklmnopqrstuvwxyz0123456789"[:32],
        "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccddddddddddddddd",
        "secret" + " " * 40,
    ],
)
def test_a_key_that_can_be_guessed_is_refused(key: str | bytes) -> None:
    """Long is not enough: blanks, zeros, repetitions, rows of the alphabet."""
    with pytest.raises(UsageError, match="guess"):
        Sealer({"k1": key})


@pytest.mark.parametrize("keys", [{}, {"k1": "short"}, {"": KEY}, {"a.b": KEY}, {"k1": b"x" * 31}])
def test_a_bad_key_is_refused_at_once(keys: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Sealer(keys)
    with pytest.raises(UsageError):
        Sealer({"k1": KEY}, max_age=0)
