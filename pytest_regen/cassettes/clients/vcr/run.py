"""A cassette of vcrpy in use: which drift and which misses there were, and what is said of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.clients.expecting import is_expected
from pytest_regen.cassettes.clients.pausing import without_pauses
from pytest_regen.cassettes.clients.vcr.bodies import comparable_bytes
from pytest_regen.cassettes.diff_files import DiffFiles
from pytest_regen.cassettes.files.reading import StoredInteraction
from pytest_regen.cassettes.keys import keys_of
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import Asked, Drift, drift_between, miss
from pytest_regen.cassettes.tape import Tape
from pytest_regen.cassettes.values import Interaction
from pytest_regen.errors import CassetteMissError
from pytest_regen.turns.interception import CassetteMiss
from pytest_regen.turns.secrets import scrub_text

__all__ = ["VcrOptions", "VcrRun"]

_AS_SENT = Matching()


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
    passing: Sequence[str] = ()
    """Hosts that pass the cassette by."""
    diff_folder: Path | None = None
    test: Callable[..., object] | None = None
    """The test's function; where it names vcrpy's own exception, it gets that for a miss."""


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
    theirs: type[BaseException] = CassetteMissError
    """What vcrpy raises for a miss."""
    test: Callable[..., object] | None = None
    files: DiffFiles = field(default_factory=lambda: DiffFiles(None))
    """Where long differences go."""
    exists: bool = True
    """Whether the file was there when the cassette was put to use."""
    drifts: list[Drift] = field(default_factory=list)
    expected: list[Asked] = field(default_factory=list)
    """Misses that a waiting function, or the test, knows how to handle."""
    missed: dict[Asked, CassetteMissError] = field(default_factory=dict)
    """The others that no failure has told yet."""
    refused: list[CassetteMissError] = field(default_factory=list)
    """Requests that vcrpy would let through."""
    unwritten: BaseException | None = None
    """What kept the cassette from being written."""
    signals_misses: bool = True
    """Whether a miss is vcrpy's own exception; at the end of fixtures it is ours, which is told."""
    _pauses: ExitStack = field(default_factory=ExitStack)

    @property
    def total(self) -> int:
        """How many recordings there are."""
        return len(self.cassette)

    @property
    def unplayed(self) -> int:
        """How many recordings nobody asked for, where nothing is sent."""
        return self.total - len(self.cassette.play_counts) if self.replays else 0

    def note_drift(self, asked: Asked, number: int, recorded: bytes) -> None:
        """Note where a request differs from recording ``number`` (from 1), which answered it."""
        drift = drift_between(self.path, asked, number, recorded, self.files)
        if drift is not None:
            self.drifts.append(drift)

    def refuse(self, asked: Asked) -> None:
        """Note a miss; vcrpy raises its own exception next.

        So a client does with it what it does there: one that has something to fall back to, or
        asks its maker for news, goes on without an answer. It asks again without pauses.
        """
        if is_expected(self.theirs, test=self.test, outside=("vcr", str(__package__))):
            self.expected.append(asked)
            return
        if asked not in self.missed:
            self.missed[asked] = self._miss(asked)
            self._pauses.enter_context(without_pauses())
        if not self.signals_misses:
            raise self.missed[asked]

    def end_pauses(self) -> None:
        """Let clients pause again."""
        self._pauses.close()

    def refuse_client(self, client: str, vcrpy: str, method: str, uri: str) -> None:
        """Raise a signal that no client retries, for a request that vcrpy would let through."""
        error = CassetteMissError(
            f"{self.path.name} has no answer to {method} {scrub_text(uri)}",
            why=f"{vcrpy} does not know {client}: it would be sent, and not recorded",
            hint="pip install 'vcrpy>=8.2', or use the fixture cassette, which knows it",
        )
        self.refused.append(error)
        raise CassetteMiss(error) if self.signals_misses else error

    def take_untold_miss(self, failure: BaseException | None) -> CassetteMissError | None:
        """Return the miss that is behind a failure, and take all of them as reported.

        A request that vcrpy would let through is one whatever became of it.

        Args:
            failure: what a test failed with; where vcrpy's exception is not behind it, no miss
                is, and those that were swallowed are told at the end of the run.
        """
        if self.refused:
            refused, self.refused = self.refused, []
            return refused[0]
        cause = next((one for one in _behind(failure) if isinstance(one, self.theirs)), None)
        if cause is None or not (self.missed or self.expected):
            return None
        request = getattr(cause, "failed_request", None)
        sent = (getattr(request, "method", None), getattr(request, "uri", None))
        known = [*self.missed, *self.expected]
        asked = next((one for one in known if (one.method, one.uri) == sent), known[0])
        error = self.missed.get(asked) or self._miss(asked)
        self.missed.clear()
        return error

    def take_swallowed_misses(self) -> list[CassetteMissError]:
        """Return the misses that nobody has told."""
        missed, self.missed = self.missed, {}
        return list(missed.values())

    def _miss(self, asked: Asked) -> CassetteMissError:
        tape = Tape(self._stored())
        for number, count in self.cassette.play_counts.items():
            if count:
                tape.mark(number + 1)
        keys = list(keys_of(asked.method, asked.uri, asked.body))
        return miss(
            self.path,
            tape,
            asked,
            key=next(filter(tape.knows, keys), keys[-1]),
            exists=self.exists or self.total > 0,
            is_left=False,
            matching=_AS_SENT,
            files=self.files,
            command=self.command,
        )

    def _stored(self) -> Iterator[StoredInteraction]:
        for request in self.cassette.requests:
            found = Interaction(
                request.method, request.uri, comparable_bytes(request.body), 200, "", b""
            )
            # The cheap key: looking for credentials in each takes longer than all the rest.
            key = next(keys_of(found.method, found.uri, found.request_body))
            yield StoredInteraction.parsed(self.path, 0, found, key)


def _behind(failure: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that led to it, those in groups among them."""
    waiting, seen = [failure], set[int]()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
