"""A cassette used as vcrpy means it, for suites that were written for pytest-recording.

vcrpy matches, plays and serializes with the suite's own configuration; here it is watched, so
that drift and misses can be told, and what it writes is scrubbed and replaces the file whole.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import Asked, Drift, drift_between, miss
from pytest_regen.cassettes.reading import StoredInteraction
from pytest_regen.cassettes.tape import Tape
from pytest_regen.cassettes.values import Interaction, request_key
from pytest_regen.errors import CassetteMissError

__all__ = ["VcrOptions", "VcrRun", "use_vcr_cassette"]


@dataclass(frozen=True, slots=True)
class VcrOptions:
    """What a suite says about one cassette."""

    path: str
    """Name of the cassette, or a path, from ``folder``."""
    folder: Path
    mode: str
    config: Mapping[str, Any]
    """Arguments of ``vcr.VCR.use_cassette``."""
    extra: tuple[str, ...]
    """Further cassettes that are replayed, never written."""
    configure: Callable[[Any], object]
    """Called with the VCR object before it is used."""
    diff_folder: Path | None = None


@dataclass(slots=True)
class VcrRun:
    """A cassette of vcrpy in use."""

    path: Path
    cassette: Any = None
    """vcrpy's own object."""
    replays: bool = True
    """Whether nothing is sent."""
    command: str = ""
    """What to run so that it is recorded anew."""
    matching: Matching = field(default_factory=Matching)
    drifts: list[Drift] = field(default_factory=list)
    missed: list[Asked] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many recordings there are."""
        return len(self.cassette)

    @property
    def unplayed(self) -> int:
        """How many recordings nobody asked for, where nothing is sent."""
        return self.total - len(self.cassette.play_counts) if self.replays else 0

    def played(self, asked: Asked, number: int, recorded: bytes) -> None:
        """Note that recording ``number`` (from 1) answered."""
        drift = drift_between(self.path, asked, number, recorded, self.matching)
        if drift is not None:
            self.drifts.append(drift)

    def miss(self) -> CassetteMissError | None:
        """Return the error for the first request that had no recording."""
        if not self.missed:
            return None
        asked = self.missed[0]
        tape = Tape(self._stored())
        for number, count in self.cassette.play_counts.items():
            if count:
                tape.mark(number + 1)
        return miss(
            self.path,
            tape,
            asked,
            key=request_key(asked.method, asked.uri, asked.body),
            exists=self.path.exists() or self.total > 0,
            matching=self.matching,
            command=self.command,
        )

    def _stored(self) -> Iterator[StoredInteraction]:
        for request in self.cassette.requests:
            found = Interaction(request.method, request.uri, body_bytes(request.body), 200, "", b"")
            stored = StoredInteraction(self.path, 0, found.key, "")
            stored.__dict__["interaction"] = found
            yield stored


def body_bytes(body: Any) -> bytes:  # noqa: ANN401 - whatever vcrpy keeps
    """Return the body of a request of vcrpy."""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else b""


@contextmanager
def use_vcr_cassette(options: VcrOptions) -> Iterator[VcrRun]:
    """Record or replay with vcrpy, as pytest-recording would, and watch.

    Yields:
        The run; its ``cassette`` is vcrpy's object.

    Raises:
        CassetteUnreadableError: a file is there, but it is empty or no cassette.
        CassetteError: what was recorded cannot be written.
    """
    from pytest_regen.cassettes.vcr_adapter import watched_cassette  # noqa: PLC0415 - loads vcrpy

    with watched_cassette(options) as run:
        yield run
