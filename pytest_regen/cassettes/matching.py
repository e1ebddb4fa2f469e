"""Which requests count as the same, the index of recordings by request, and the drift policy."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pytest_regen.cassettes import json_bodies
from pytest_regen.cassettes.files.bodies import unpack, with_stable_boundary
from pytest_regen.cassettes.files.reader import StoredInteraction
from pytest_regen.cassettes.interactions import Interaction, request_key
from pytest_regen.errors import CassetteError, UsageError
from pytest_regen.modes import POLICIES, FindingPolicy
from pytest_regen.strict_json import json_bytes, json_or_none

DriftPolicy = FindingPolicy
"""What happens to a request that differs from its recording: it fails; it is answered by the
recording in its place and reported as drift; or it is answered silently, as in vcrpy."""


Normalize = Callable[[Any], Any]
"""Takes the JSON body of a request, returns the JSON that is compared and kept."""

Scrub = Callable[[str], str]
"""Takes a text and returns it without what must not be stored."""

IGNORED = "[ignored]"
"""What a cassette holds where a path was declared to vary."""


@dataclass(frozen=True)
class Matching:
    """How requests are compared with recordings.

    Not slotted: the parsed paths are cached.
    """

    drift: DriftPolicy = "fail"
    ignore: Sequence[str] = ()
    """Paths (``$.metadata.user_id``) whose values are not compared."""
    normalize: Normalize | None = None
    scrub: Scrub | None = None
    """Called with every text of requests and answers, to take out what is no credential but must
    not be stored either, such as names of customers."""
    diff_folder: Path | None = None
    """Where long differences are written in full; nowhere by default."""

    def __post_init__(self) -> None:
        if self.drift not in POLICIES:
            raise UsageError(
                f"drift = {self.drift!r} is not one of {', '.join(POLICIES)}",
                hint="fail is the default; warn replays in recorded order and lists the drift",
            )
        _ = self._paths  # a path that cannot be read is refused before anything is compared

    @cached_property
    def _paths(self) -> tuple[json_bodies.JsonPath, ...]:
        return tuple(json_bodies.parse_path(text) for text in self.ignore)

    @property
    def is_plain(self) -> bool:
        """Whether bodies are compared as they are."""
        return not self.ignore and self.normalize is None and self.scrub is None

    def normalize_body(self, body: bytes) -> bytes:
        """Return a request body as it is compared and kept.

        Raises:
            CassetteError: the project's ``normalize`` or ``scrub`` failed or returned something
                unusable.
        """
        body = with_stable_boundary(unpack(body))
        value = None if self.is_plain else json_or_none(body)
        if value is None:
            return self.scrub_body(body)
        changed = self.normalize_json(value)
        return body if changed == value else json_bytes(changed)

    def normalize_json(self, value: Any) -> Any:
        """Return the JSON of a request body as it is compared and kept; raises as above."""
        if self.normalize is not None:
            try:
                # A copy, because the function may change what it is given.
                value = self.normalize(json.loads(json.dumps(value)))
                json.dumps(value)
            except Exception as error:
                raise _function_error("normalize", self.normalize, repr(error)) from error
            if value is None:  # because all requests would be equal
                raise _function_error("normalize", self.normalize, "it returned None, not JSON")
        for path in self._paths:
            value = json_bodies.replace_at(value, path, IGNORED)
        return value if self.scrub is None else json_bodies.map_texts(value, self.scrub_text)

    def scrub_text(self, text: str) -> str:
        """Return a text, such as an address, as it is compared and kept; raises as above."""
        if self.scrub is None:
            return text
        try:
            clean = self.scrub(text)
        except Exception as error:
            raise _function_error("scrub", self.scrub, repr(error)) from error
        if not isinstance(clean, str):
            raise _function_error(
                "scrub", self.scrub, f"it returned {type(clean).__name__}, not text"
            )
        return clean

    def scrub_body(self, body: bytes) -> bytes:
        """Return a body with the project's ``scrub`` applied; raises as above."""
        if self.scrub is None:
            return body
        change = partial(json_bodies.map_texts, change=self.scrub_text)
        try:
            return json_bodies.change_body(body, change, self.scrub_text)
        except UnicodeDecodeError:
            # Not text: an image, or a body that the client compressed itself.
            return body

    def key_of(self, stored: StoredInteraction) -> str:
        """Return what a normalized request must equal to be given this recording."""
        interaction = stored.interaction
        body = self.normalize_body(interaction.request_body)
        return request_key(interaction.method, self.scrub_text(interaction.uri), body)


def _function_error(role: str, function: Callable[..., object], why: str) -> CassetteError:
    """Return the error for a function of the project that raised or returned something else."""
    name = getattr(function, "__qualname__", None) or repr(function)
    return CassetteError(
        f"{role}={name} failed on a request",
        why=why,
        hint="it is called with every request: let it return what it does not know as it is",
    )


class RecordingIndex:
    """Recordings in recorded order, each of which answers one request; safe in any thread.

    It has no lock, for which an event loop would have to wait: each step is one atomic operation of
    a list or a dict.

    Callers identify a recording by its number in the file, from 1; positions from 0 stay inside.

    Args:
        interactions: the recordings.
        rekey: returns the key of a recording under the project's rules, without credentials.
            Because it may parse and search every recording, it is used only for a request that no
            key at hand matches.
    """

    def __init__(
        self,
        interactions: Iterable[StoredInteraction],
        rekey: Callable[[StoredInteraction], str],
    ) -> None:
        self._all = tuple(interactions)
        self._waiting = _index(stored.first_key for stored in self._all)
        self._rekey = rekey
        self._played: dict[int, object] = {}
        """By position: the token of the caller that claimed the recording first."""

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _rekeyed(self) -> dict[str, list[int]]:
        return _index(map(self._rekey, self._all))

    def take(self, key: str) -> StoredInteraction | None:
        """Return the next recording for ``key`` and mark it played, or ``None``."""
        # The second only where the first has none left, because making it searches every recording.
        for position in self._waiting.get(key, ()):
            if self._claim(position):
                return self._all[position]
        for position in self._rekeyed.get(key, ()):
            if self._claim(position):
                return self._all[position]
        return None

    def take_in_order(
        self, fits: Callable[[Interaction], bool]
    ) -> tuple[int, StoredInteraction] | None:
        """Mark the first unplayed recording that ``fits`` played; return it and its number."""
        for position, stored in enumerate(self._all):
            is_free = position not in self._played and fits(stored.interaction)
            if is_free and self._claim(position):
                return position + 1, stored
        return None

    def mark(self, number: int) -> None:
        """Mark a recording, by its number, as played elsewhere."""
        self._claim(number - 1)

    def _claim(self, position: int) -> bool:
        """Mark a recording played; return whether this call was the one that did."""
        # One step, so that of two threads only one is given its own token.
        token = object()
        return self._played.setdefault(position, token) is token

    def knows(self, key: str) -> bool:
        """Whether ``key`` was recorded at all, played or not."""
        return key in self._waiting or key in self._rekeyed

    @property
    def played(self) -> int:
        """How many recordings were played."""
        return len(self._played)

    @property
    def unplayed(self) -> tuple[tuple[int, StoredInteraction], ...]:
        """The recordings that no request asked for, each with its number."""
        return tuple(pair for pair in self.numbered if pair[0] - 1 not in self._played)

    @property
    def numbered(self) -> tuple[tuple[int, StoredInteraction], ...]:
        """All recordings, each with its number."""
        return tuple(enumerate(self._all, 1))


def _index(keys: Iterable[str]) -> dict[str, list[int]]:
    """Return the positions of recordings by their keys."""
    index: dict[str, list[int]] = {}
    for position, key in enumerate(keys):
        index.setdefault(key, []).append(position)
    return index
