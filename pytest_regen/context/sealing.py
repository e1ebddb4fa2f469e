"""Seals: they prove that what a caller sends back is what an earlier turn returned."""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final, Literal

from pytest_regen.canonical import canonical_json
from pytest_regen.context.conversation import Conversation
from pytest_regen.errors import (
    SealExpiredError,
    SealKeyError,
    SealMissingError,
    SealMovedError,
    SealTamperedError,
    UsageError,
)

# Before what is signed, because the key may sign other things elsewhere.
_SALT: Final = b"pytest-regen.context."
_SHORTEST_KEY: Final = 32
_FEWEST: Final = 6
"""Different bytes, and steps from one byte to the next, of a key."""
_AGAIN: Final = "start again from the description"
_SKEW: Final = 30
"""Seconds by which the clocks of two servers may differ."""
# Bytes of a part's hash: half of SHA-256's and some more, because a seal travels in form fields.
_DIGEST: Final = 20

_Conversation = Conversation[Any, Any]


class Sealer:
    """Makes and checks seals: HMAC-SHA256 over what a turn returned, with a time limit.

    A seal holds hashes and no text. It binds all members of a conversation but the answers of
    its last round, which are the caller's to change; and the conversation's name and the time.

    Args:
        keys: secrets of at least 32 bytes by their id, made by chance. The first one seals, all of
            them check, so that a key can be replaced without refusing what it sealed.
        max_age: seconds for which a seal is good. It may be sent again until then, as a caller
            does who lost the connection.
        clock: tells the time, in seconds since 1970.

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
    ) -> None:
        self._keys = {name: _secret(name, key) for name, key in keys.items()}
        if not self._keys:
            raise UsageError(
                "no key to seal with", hint='pass {"2026-11": secrets.token_bytes(32)}'
            )
        if not max_age > 0:
            raise UsageError(
                f"max_age={max_age!r}: no seal would be good", hint="give seconds: 3600"
            )
        self.max_age = max_age
        self._key_id = next(iter(self._keys))
        self._clock = clock

    def seal(self, context: _Conversation, *, conversation: str) -> str:
        """Return a seal: text safe in addresses, headers and form fields."""
        # Hashes and no text, because a seal stands in addresses and logs.
        stamp = str(int(self._clock()))
        hashes = (_digest(conversation), *_digests(context).values())
        payload = ".".join((self._key_id, stamp, *hashes))
        return f"{payload}.{self._signature(self._key_id, payload)}"

    def unseal(self, seal: str, context: _Conversation, *, conversation: str) -> None:
        """Check that ``seal`` vouches for ``context``.

        Raises:
            SealTamperedError: the seal, or a part of the context, was changed.
            SealMovedError: it was made in another conversation.
            SealExpiredError: it is too old, or from the future.
            SealKeyError: its key is not one of ours.
        """
        payload, _, signature = seal.rpartition(".")
        key_id = seal.partition(".")[0]
        if key_id not in self._keys:
            raise SealKeyError(
                "the seal was made with a key that is not ours",
                why="its key was withdrawn, or another server made it",
                hint=_AGAIN,
            )
        # As bytes, because a foreign seal may hold any characters, halves of pairs among them.
        expected = self._signature(key_id, payload).encode()
        if not hmac.compare_digest(expected, signature.encode("utf-8", "surrogatepass")):
            raise _tampering("the seal was changed")
        _, stamp, sealed_conversation, *sealed = payload.split(".")
        age = int(self._clock()) - int(stamp)
        if not -_SKEW <= age <= self.max_age:
            raise SealExpiredError(
                f"the seal is {age} seconds old",
                why=f"seals are good for {self.max_age:.0f} seconds",
                hint=_AGAIN,
            )
        if sealed_conversation != _digest(conversation):
            raise SealMovedError(
                "the seal was made in another conversation",
                why="a seal is good for the conversation in which the questions were asked",
                hint=_AGAIN,
            )
        # Part by part, because the error names what was changed.
        digests = _digests(context)
        if len(sealed) != len(digests):
            raise _tampering("the context is of another type than the one that was sealed")
        pairs = zip(digests.items(), sealed, strict=True)
        changed = [name for (name, digest), before in pairs if digest != before]
        if changed:
            raise _tampering(f"not what was sealed: {' and '.join(changed)} of the context")

    def _signature(self, key_id: str, payload: str) -> str:
        signed = _SALT + payload.encode("utf-8", "surrogatepass")
        return hmac.new(self._keys[key_id], signed, hashlib.sha256).hexdigest()


SealPolicy = Sealer | Literal["off"]
"""How contexts are checked. Only who writes ``"off"`` goes without seals."""


def require_seal(
    policy: SealPolicy, seal: str | None, context: _Conversation, *, conversation: str
) -> None:
    """Check a context as ``policy`` demands.

    Raises:
        SealMissingError: a seal is required and there is none.
        SealError: it does not vouch for ``context``; see ``Sealer.unseal``.
    """
    if policy == "off":
        return
    if not isinstance(policy, Sealer):
        raise UsageError(
            f"{policy!r} is not a seal policy", hint='pass a Sealer, or "off" to go without seals'
        )
    if not seal:
        raise SealMissingError(
            "the context has no seal",
            why="without one, questions and inferences could be anybody's",
            hint="send back the seal that the first turn returned",
        )
    policy.unseal(seal, context, conversation=conversation)


def _secret(name: str, key: bytes | str) -> bytes:
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < _SHORTEST_KEY:
        raise UsageError(
            f"key {name!r} is too short to seal with: {len(secret)} bytes",
            why=f"{_SHORTEST_KEY} are the least that HMAC-SHA256 is worth",
            hint="make one with secrets.token_hex(32)",
        )
    # Random keys pass: of 16 random bytes in hex, the poorest that is long enough, one in 10^12
    # has so few different bytes or steps.
    bare = secret.strip()
    steps = {(after - before) % 256 for before, after in pairwise(bare)}
    period = next(n for n in range(1, len(bare) + 2) if bare[n:] == bare[: len(bare) - n])
    if len({*bare}) < _FEWEST or len(steps) < _FEWEST or period < _SHORTEST_KEY // 2:
        raise UsageError(
            f"key {name!r} is easy to guess",
            why="its bytes are few, repeat one another, or stand in a row",
            hint="make one with secrets.token_hex(32)",
        )
    if not name or "." in name:
        raise UsageError(f"{name!r} is not a key id", hint="name it without dots: 2026-11")
    return secret


def _digests(context: _Conversation) -> dict[str, str]:
    data = context.model_dump(mode="json", exclude={"answers"})
    # Absent members count, too, because otherwise one could be added.
    names = (name for name in type(context).model_fields if name != "answers")
    return {name: _digest(data.get(name)) for name in names}


def _digest(part: object) -> str:
    return hashlib.blake2b(canonical_json(part).encode(), digest_size=_DIGEST).hexdigest()


def _tampering(what: str) -> SealTamperedError:
    return SealTamperedError(
        what,
        why="between the turns a caller may add answers, and change nothing else",
        hint=f"send back what the first turn returned, unchanged, or {_AGAIN}",
    )
