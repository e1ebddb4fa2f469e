"""Recordings given out: the one made for a request, or the one recorded in its place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.diff_files import DiffFiles
from pytest_regen.cassettes.files.appending import stamp_of
from pytest_regen.cassettes.files.places import partial_path
from pytest_regen.cassettes.files.reading import CassetteFile, StoredInteraction
from pytest_regen.cassettes.keys import keys_of, request_key
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import Asked, Drift, drift_of, miss
from pytest_regen.cassettes.tape import Tape
from pytest_regen.errors import CassetteMissError

__all__ = ["Player"]


class Player:
    """The recordings of one cassette, found by request.

    Args:
        path: the cassette.
        file: what stands in it; ``None`` where there is no file.
        matching: what counts as the same request.
        command: what the message of a miss says to run.
    """

    def __init__(
        self,
        path: Path,
        file: CassetteFile | None,
        matching: Matching,
        command: str = "",
    ) -> None:
        self.path = path
        self.exists = file is not None
        # Asked now: a miss is told inside event loops, too, which must not wait for a file.
        # A name that is too long for it is told where something is to be written.
        self._is_left = file is None and stamp_of(partial_path(path)) is not None
        self.matching = matching
        self.files = DiffFiles(matching.diff_folder)
        self.tape = Tape(
            file.interactions if file else (), None if matching.is_plain else matching.key_of
        )
        self._command = command
        self._drifts: list[Drift] = []

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """The requests that were given the recording of another one (``drift="warn"``)."""
        return tuple(self._drifts)

    def find(
        self, method: str, uri: str, body: bytes | Mapping[str, Any], *, in_place: bool
    ) -> StoredInteraction | None:
        """Return the next recording for a request and mark it played, or ``None``.

        Args:
            method: HTTP method.
            uri: whole address, or its path.
            body: what was sent, normalized.
            in_place: whether the recording that stands in its place may answer, too, if the
                policy allows.

        Raises:
            CassetteUnreadableError: a recording was edited.
        """
        policy = self.matching.drift
        if policy != "ignore":
            taken_by_key = map(self.tape.take, keys_of(method, uri, body))
            stored = next((one for one in taken_by_key if one is not None), None)
            if stored is not None or policy == "fail" or not in_place:
                return stored
        asked = Asked(method, uri, body)
        taken = self.tape.take_in_order(asked.same_place)
        if taken is None:
            return None
        number, stored = taken
        if policy == "warn":
            drift = drift_of(
                self.path, asked, number, stored, matching=self.matching, files=self.files
            )
            self._drifts.append(drift)
        return stored

    def missed(self, method: str, uri: str, body: bytes | Mapping[str, Any]) -> CassetteMissError:
        """Return the error for a request that has no recording."""
        return miss(
            self.path,
            self.tape,
            Asked(method, uri, body),
            key=request_key(method, uri, body),
            exists=self.exists,
            is_left=self._is_left,
            matching=self.matching,
            files=self.files,
            command=self._command,
        )
