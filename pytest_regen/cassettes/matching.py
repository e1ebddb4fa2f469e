"""What counts as the same request: paths that vary, a project's own rule, and what drift does."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from pytest_regen.cassettes.paths import JsonPath, parse_path, replaced
from pytest_regen.cassettes.values import Interaction, json_or_none, request_key
from pytest_regen.errors import UsageError

__all__ = ["DRIFT_POLICIES", "IGNORED", "DriftPolicy", "Matching", "Normalize"]

DriftPolicy = Literal["fail", "warn", "ignore"]
"""What becomes of a request that is not what was recorded: it fails; or the recording that stands
in its place answers, and the drift is told; or it answers without a word, as in vcrpy."""

DRIFT_POLICIES: tuple[DriftPolicy, ...] = get_args(DriftPolicy)

Normalize = Callable[[Any], Any]
"""Takes the JSON body of a request, returns the JSON that is compared and kept."""

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
    diff_folder: Path | None = None
    """Where the whole of a long difference is written; nowhere by default."""

    def __post_init__(self) -> None:
        if self.drift not in DRIFT_POLICIES:
            raise UsageError(
                f"drift = {self.drift!r} is none of {', '.join(DRIFT_POLICIES)}",
                hint="fail is the default; warn replays in recorded order and lists the drift",
            )
        _ = self._paths  # a path that cannot be read is told before anything is compared

    @cached_property
    def _paths(self) -> tuple[JsonPath, ...]:
        return tuple(parse_path(text) for text in self.ignore)

    @property
    def is_plain(self) -> bool:
        """Whether bodies are compared as they are."""
        return not self.ignore and self.normalize is None

    def normalized(self, body: bytes) -> bytes:
        """Return a request body as it is compared and kept; one that is no JSON stays as it is."""
        value = None if self.is_plain else json_or_none(body)
        if value is None:
            return body
        changed = self.normalized_json(value)
        return body if changed == value else json.dumps(changed, ensure_ascii=False).encode()

    def normalized_json(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of a request body as it is compared and kept."""
        if self.normalize is not None:
            # A copy: the function may change what it is given.
            value = self.normalize(json.loads(json.dumps(value)))
        for path in self._paths:
            value = replaced(value, path, IGNORED)
        return value

    def key_of(self, interaction: Interaction) -> str:
        """Return what a normalized request must equal to be given this recording."""
        body = self.normalized(interaction.request_body)
        return request_key(interaction.method, interaction.uri, body)
