"""Seals: they prove that what a caller sends back is what the first turn returned."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

from pytest_regen.canonical import canonical_json
from pytest_regen.context.questions import ClarificationQuestion
from pytest_regen.context.values import SCHEMA_VERSION, ConversationContext, InferredContext
from pytest_regen.errors import (
    SealExpiredError,
    SealKeyError,
    SealMissingError,
    SealMovedError,
    SealSpentError,
    SealTamperedError,
    UsageError,
)

_SALT: Final = "pytest-regen.context"
_SHORTEST_KEY: Final = 32
_FEWEST: Final = 6
"""Different bytes, and steps from one byte to the next, of a key."""
_AGAIN: Final = "start again from the description"
_SKEW: Final = 30
"""Seconds by which the clocks of two servers may differ."""
_PARTS: Final = ("description", "questions", "inferences")


class SpentSeals(Protocol):
    """Where used seals are noted, for those who let each count once.

    A seal is reserved before its turn. Afterwards it is confirmed, or released where the turn
    failed; if the server died in between, it stays reserved.
    """

    def reserve(self, seal_id: str, expires_at: float) -> bool:
        """Reserve a seal, atomically.

        Args:
            seal_id: hash of what the seal says.
            expires_at: when it may be forgotten, in seconds since 1970.

        Returns:
            Whether it was free: neither reserved nor confirmed.
        """
        ...

    def confirm(self, seal_id: str) -> None:
        """Note that a reserved seal is used for good."""
        ...

    def release(self, seal_id: str) -> None:
        """Let a reserved seal be used again."""
        ...


@dataclass(frozen=True, slots=True)
class Seal:
    """What a good seal says."""

    conversation: str
    key_id: str
    issued_at: float
    """Seconds since 1970."""
    expires_at: float
    seal_id: str
    """Under which it is reserved where seals count once: a hash of what was signed."""


class Sealer:
    """Makes and checks seals: HMAC-SHA256 over what the first turn returned, with a time limit.

    A seal holds hashes and no text. It binds description, questions, inferences, conversation and
    time of issue; answers are the caller's to change.

    Args:
        keys: secrets of at least 32 bytes by their id, made by chance. The first one seals, all of
            them check, so that a key can be replaced without refusing what it sealed.
        max_age: seconds for which a seal is good.
        clock: tells the time, in seconds since 1970.
        spent: where given, each seal counts once; otherwise it may be sent again until it expires,
            as a caller does who lost the connection.

    Raises:
        UsageError: there is no key, one that is short or can be guessed, or no time for which
            seals are good.
    """

    def __init__(
        self,
        keys: Mapping[str, bytes | str],
        *,
        max_age: float = 3600,
        clock: Callable[[], float] = time.time,
        spent: SpentSeals | None = None,
    ) -> None:
        secrets = {name: _secret(name, key) for name, key in keys.items()}
        if not secrets:
            raise UsageError(
                "no key to seal with", hint='pass {"2026-11": secrets.token_bytes(32)}'
            )
        if not max_age > 0:
            raise UsageError(
                f"max_age={max_age!r}: no seal would be good", hint="give seconds: 3600"
            )
        from pytest_regen.context.signing import Signer

        self.max_age = max_age
        self._signers = {
            name: Signer(f"{_SALT}.{name}", key, clock) for name, key in secrets.items()
        }
        self._key_id = next(iter(secrets))
        self._clock = clock
        self._spent = spent

    def seal(
        self,
        description: str,
        questions: tuple[ClarificationQuestion, ...],
        inferred: InferredContext,
        *,
        conversation: str,
    ) -> str:
        """Return a seal: text safe in addresses, headers and form fields."""
        claims = {"c": _digest(conversation), **_digests(description, questions, inferred)}
        payload = _base64(canonical_json(claims).encode())
        return self._signers[self._key_id].sign(f"{self._key_id}.{payload}").decode()

    def unseal(self, seal: str, context: ConversationContext, *, conversation: str) -> Seal:
        """Check that ``seal`` vouches for ``context``, and return what it says.

        Where seals count once it is reserved; call ``confirm`` or ``release`` after the turn.

        Raises:
            SealTamperedError: the seal, or a part of the context, was changed.
            SealMovedError: it was made in another conversation.
            SealExpiredError: it is too old, or from the future.
            SealKeyError: its key is not one of ours.
            SealSpentError: it was used or is in use, and seals count once here.
        """
        key_id, claims, issued_at = self._open(seal)
        if claims.get("c") != _digest(conversation):
            raise SealMovedError(
                "the seal was made in another conversation",
                why="a seal is good for the conversation in which the questions were asked",
                hint=_AGAIN,
            )
        _compare(claims, context)
        # Of what was signed, not of its text: one signature may be written in several ways.
        seal_id = hashlib.sha256(seal.rpartition(".")[0].encode()).hexdigest()
        found = Seal(conversation, key_id, issued_at, issued_at + self.max_age, seal_id)
        self._reserve(found)
        return found

    def confirm(self, found: Seal) -> None:
        """Note that the turn of a seal was taken; does nothing where seals may be used again."""
        if self._spent is not None:
            self._spent.confirm(found.seal_id)

    def release(self, found: Seal) -> None:
        """Let a seal be used again whose turn failed."""
        if self._spent is not None:
            self._spent.release(found.seal_id)

    def _open(self, seal: str) -> tuple[str, Mapping[str, Any], float]:
        key_id = seal.partition(".")[0]
        signer = self._signers.get(key_id)
        if signer is None:
            raise SealKeyError(
                "the seal was made with a key that is not ours",
                why="its key was withdrawn, or another server made it",
                hint=_AGAIN,
            )
        if not _is_canonical(seal):
            raise _tampering("the seal was changed")
        try:
            value, issued_at = signer.open(seal)
            claims: Mapping[str, Any] = json.loads(_unbase64(value.partition(".")[2]))
        except ValueError:
            raise _tampering("the seal was changed") from None
        self._check_age(issued_at)
        return key_id, claims, issued_at

    def _check_age(self, issued_at: float) -> None:
        age = int(self._clock()) - issued_at  # whole seconds are stamped
        if not -_SKEW <= age <= self.max_age:
            raise SealExpiredError(
                f"the seal is {age:.0f} seconds old",
                why=f"seals are good for {self.max_age:.0f} seconds",
                hint=_AGAIN,
            )

    def _reserve(self, found: Seal) -> None:
        if self._spent is not None and not self._spent.reserve(found.seal_id, found.expires_at):
            raise SealSpentError(
                "the seal was used before, or is in use", why="seals count once here", hint=_AGAIN
            )


SealPolicy = Sealer | Literal["off"]
"""How contexts are checked. Only who writes ``"off"`` goes without seals."""


def require_seal(
    policy: SealPolicy, seal: str | None, context: ConversationContext, *, conversation: str
) -> Seal | None:
    """Check a context as ``policy`` demands; return what its seal says, ``None`` without seals.

    Raises:
        SealMissingError: a seal is required and there is none.
        SealError: it does not vouch for ``context``; see ``Sealer.unseal``.
    """
    if policy == "off":
        return None
    if not isinstance(policy, Sealer):
        raise UsageError(
            f"{policy!r} is no seal policy", hint='pass a Sealer, or "off" to go without seals'
        )
    if not seal:
        raise SealMissingError(
            "the context has no seal",
            why="without one, questions and inferences could be anybody's",
            hint="send back the seal that the first turn returned",
        )
    return policy.unseal(seal, context, conversation=conversation)


def _secret(name: str, key: bytes | str) -> bytes:
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < _SHORTEST_KEY:
        raise UsageError(
            f"key {name!r} is too short to seal with: {len(secret)} bytes",
            why=f"{_SHORTEST_KEY} are the least that HMAC-SHA256 is worth",
            hint="make one with secrets.token_hex(32)",
        )
    if _is_weak(secret):
        raise UsageError(
            f"key {name!r} is easy to guess",
            why="its bytes are few, repeat one another, or stand in a row",
            hint="make one with secrets.token_hex(32)",
        )
    if not name or "." in name:
        raise UsageError(f"{name!r} is no id of a key", hint="name it without dots: 2026-11")
    return secret


def _is_weak(secret: bytes) -> bool:
    """Return whether a key is not random: few different bytes, a repetition, a sequence.

    Of 16 random bytes in hex, the poorest key that is long enough, one in 10^12 has so few.
    """
    bare = secret.strip()
    steps = {(after - before) % 256 for before, after in pairwise(bare)}
    shortest = next(n for n in range(1, len(bare) + 2) if bare[n:] == bare[: len(bare) - n])
    return len({*bare}) < _FEWEST or len(steps) < _FEWEST or shortest < _SHORTEST_KEY // 2


def _is_canonical(seal: str) -> bool:
    """Return whether each part but the key's id is base64 as written here, to the last bit."""
    parts = seal.split(".")[1:]
    try:
        return all(_base64(_unbase64(part)) == part for part in parts)
    except ValueError:
        return False


def _digests(
    description: str, questions: tuple[ClarificationQuestion, ...], inferred: InferredContext
) -> dict[str, object]:
    parts: tuple[Any, ...] = (
        description,
        [question.model_dump(mode="json") for question in questions],
        inferred.model_dump(mode="json"),
    )
    found = {name: _digest(part) for name, part in zip(_PARTS, parts, strict=True)}
    return {"v": SCHEMA_VERSION, **found}


def _digest(part: object) -> str:
    return _base64(hashlib.sha256(canonical_json(part).encode()).digest())


def _base64(data: bytes) -> str:
    """Return base64 that is safe in addresses, without the padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unbase64(text: str) -> bytes:
    """Return what ``_base64`` encoded; raises ``ValueError`` for any other text."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _compare(claims: Mapping[str, Any], context: ConversationContext) -> None:
    digests = _digests(
        context.original_description, context.questions_asked, context.inferred_context
    )
    changed = [name for name in _PARTS if claims.get(name) != digests[name]]
    if changed or claims.get("v") != SCHEMA_VERSION:
        what = " and ".join(changed) or "form"
        raise _tampering(f"the {what} of the context are not those that were sealed")


def _tampering(what: str) -> SealTamperedError:
    return SealTamperedError(
        what,
        why="between the turns a caller may add answers, and change nothing else",
        hint=f"send back what the first turn returned, unchanged, or {_AGAIN}",
    )
