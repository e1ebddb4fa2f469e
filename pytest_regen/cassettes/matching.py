"""What counts as the same request: paths that vary, a project's own rule, and the drift policy."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.files.decoding import unpacked
from pytest_regen.cassettes.json_text import rewritten
from pytest_regen.cassettes.keys import request_key
from pytest_regen.cassettes.multipart import with_stable_boundary
from pytest_regen.cassettes.paths import JsonPath, changed_texts, parse_path, replaced
from pytest_regen.cassettes.strict_json import json_bytes, json_or_none
from pytest_regen.cassettes.values import Interaction
from pytest_regen.errors import CassetteError, UsageError
from pytest_regen.modes import POLICIES, Policy

__all__ = ["IGNORED", "DriftPolicy", "Matching", "Normalize", "Scrub"]

DriftPolicy = Policy
"""How a request is handled that is not what was recorded: it fails; or the recording that stands
in its place answers, and the drift is reported; or it answers in silence, as in vcrpy."""


Normalize = Callable[[Any], Any]
"""Takes the JSON body of a request, returns the JSON that is compared and kept."""

Scrub = Callable[[str], str]
"""Takes a text and returns it without what must not be kept."""

IGNORED = "[ignored]"
"""Stands in a cassette where a path was declared to vary."""


@dataclass(frozen=True)
class Matching:
    """How requests are compared with recordings.

    Not slotted: the parsed paths are kept.
    """

    drift: DriftPolicy = "fail"
    ignore: Sequence[str] = ()
    """Paths (``$.metadata.user_id``) whose values have no part in the comparison."""
    normalize: Normalize | None = None
    scrub: Scrub | None = None
    """Called with every text of requests and answers: what has the shape of no credential, and
    must not be kept all the same, such as the names of customers."""
    diff_folder: Path | None = None
    """Where the whole of a long difference is written; nowhere by default."""

    def __post_init__(self) -> None:
        if self.drift not in POLICIES:
            raise UsageError(
                f"drift = {self.drift!r} is none of {', '.join(POLICIES)}",
                hint="fail is the default; warn replays in recorded order and lists the drift",
            )
        _ = self._paths  # a path that cannot be read is refused before anything is compared

    @cached_property
    def _paths(self) -> tuple[JsonPath, ...]:
        return tuple(parse_path(text) for text in self.ignore)

    @property
    def is_plain(self) -> bool:
        """Whether bodies are compared as they are."""
        return not self.ignore and self.normalize is None and self.scrub is None

    def normalized(self, body: bytes) -> bytes:
        """Return a request body as it is compared and kept.

        Raises:
            CassetteError: the project's ``normalize`` or ``scrub`` failed, or gave no such value.
        """
        body = with_stable_boundary(unpacked(body))
        value = None if self.is_plain else json_or_none(body)
        if value is None:
            return self.scrubbed(body)
        changed = self.normalized_json(value)
        return body if changed == value else json_bytes(changed)

    def normalized_json(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of a request body as it is compared and kept; raises as above."""
        if self.normalize is not None:
            value = _normalized(self.normalize, value)
        for path in self._paths:
            value = replaced(value, path, IGNORED)
        return value if self.scrub is None else changed_texts(value, self._scrubbed_text)

    def normalized_uri(self, uri: str) -> str:
        """Return an address as it is compared and kept; raises as above."""
        return self._scrubbed_text(uri)

    def _scrubbed_text(self, text: str) -> str:
        if self.scrub is None:
            return text
        try:
            clean = self.scrub(text)
        except Exception as error:
            raise _failed("scrub", self.scrub, error) from error
        if not isinstance(clean, str):
            raise _gave("scrub", self.scrub, clean, "return the text, changed or as it was")
        return clean

    def scrubbed(self, body: bytes) -> bytes:
        """Return a body without what the project's own function takes out; raises as above."""
        if self.scrub is None:
            return body
        value = json_or_none(body)
        if value is not None:
            return rewritten(body, value, changed_texts(value, self._scrubbed_text))
        try:
            text = body.decode()
        except UnicodeDecodeError:
            # No text: an image, or what a client compressed itself.
            return body
        return self._scrubbed_text(text).encode()

    def key_of(self, interaction: Interaction) -> str:
        """Return what a normalized request must equal to be given this recording."""
        body = self.normalized(interaction.request_body)
        return request_key(interaction.method, self.normalized_uri(interaction.uri), body)


def _normalized(normalize: Normalize, value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what a project's function makes of a request, if that is JSON."""
    # The function may change what it is given.
    copy = json.loads(json.dumps(value))
    try:
        found = normalize(copy)
    except Exception as error:
        raise _failed("normalize", normalize, error) from error
    if found is None:
        # All requests would be equal.
        raise _gave("normalize", normalize, None, "end the function with return and the JSON")
    try:
        json.dumps(found)
    except (TypeError, ValueError) as error:
        hint = "return JSON: dict, list, str, int, float, bool"
        raise _gave("normalize", normalize, found, hint) from error
    return found


def _failed(role: str, function: Callable[..., object], error: Exception) -> CassetteError:
    return CassetteError(
        f"{role}={_name(function)} failed on a request",
        why=f"{type(error).__name__}: {error}",
        hint="it is called with every request: let it return what it does not know as it is",
    )


def _gave(role: str, function: Callable[..., object], value: object, hint: str) -> CassetteError:
    what = f"{role}={_name(function)} returned {type(value).__name__}"
    why = "what it returns is compared and kept in place of what was sent"
    return CassetteError(what, why=why, hint=hint)


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))
