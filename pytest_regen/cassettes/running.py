"""A cassette in use: every request of the process is recorded or replayed while it is."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.blocking import blocked_sockets
from pytest_regen.cassettes.matching import DriftPolicy, Matching, Normalize
from pytest_regen.cassettes.misses import Drift
from pytest_regen.cassettes.playing import Player
from pytest_regen.cassettes.reading import CassetteFile, StoredInteraction, read_cassette
from pytest_regen.cassettes.recording import Exchange, kept_exchange
from pytest_regen.cassettes.replay import replayed_turn
from pytest_regen.cassettes.scrubbing import is_emulated
from pytest_regen.cassettes.values import RECORD_MODES, Interaction, RecordMode
from pytest_regen.cassettes.writing import CassetteWriter
from pytest_regen.errors import CassetteError, UsageError
from pytest_regen.turns.interception import CassetteMiss, intercepting
from pytest_regen.turns.values import Reply

__all__ = ["CassetteRun", "use_cassette"]


class _NotRecordedError(Exception):
    """The turn is to be sent: nothing, or nothing more, was recorded for it."""


class CassetteRun:
    """A cassette while it is used. Made by ``use_cassette``; any thread may use it.

    Args:
        path: the cassette.
        mode: whether to replay, to record, or both.
        record_command: what the message of a miss says to run; a pytest command by default.
        answers_turns: whether turns of our own providers are answered without their SDK.
        matching: what counts as the same request, and what drift does.
        drop_unplayed: whether recordings that nobody asked for leave the cassette when something
            new is recorded.
    """

    def __init__(
        self,
        path: Path,
        mode: RecordMode = "none",
        *,
        record_command: str = "",
        answers_turns: bool = True,
        matching: Matching | None = None,
        drop_unplayed: bool = False,
    ) -> None:
        self.path = path
        self.mode = mode
        file = self._file(path, mode)
        self.metadata: Mapping[str, Any] = file.metadata if file else {}
        self._player = Player(path, file, matching or Matching(), record_command)
        self.tape = self._player.tape
        self._writer = CassetteWriter(path, mode, file)
        self._answers_turns = answers_turns
        self._drop_unplayed = drop_unplayed
        self._lock = threading.Lock()
        self._recorded: list[Interaction] = []
        self._pending: list[CassetteMiss] = []

    @staticmethod
    def _file(path: Path, mode: RecordMode) -> CassetteFile | None:
        # What "rewrite" replaces need not be readable.
        return None if mode == "rewrite" else read_cassette(path)

    @property
    def played(self) -> int:
        """Recordings given out."""
        return self.tape.played

    @property
    def recorded(self) -> int:
        """Requests sent and recorded."""
        with self._lock:
            return len(self._recorded)

    @property
    def unplayed(self) -> int:
        """Recordings nobody asked for."""
        return len(self.tape.unplayed)

    @property
    def drifts(self) -> tuple[Drift, ...]:
        """The requests that were answered by the recording of another one (``drift="warn"``)."""
        return self._player.drifts

    @property
    def emulated(self) -> bool:
        """Whether the emulator, not the real API, gave any of the answers."""
        return "emulator" in str(self.metadata.get("source") or "") or any(
            is_emulated(interaction.response_headers) for interaction in self._recorded
        )

    @property
    def is_replay_only(self) -> bool:
        """Whether no request can reach the network."""
        return self.mode == "none" or (self.mode == "once" and self._player.exists)

    @property
    def sends_everything(self) -> bool:
        """Whether recordings are not played."""
        return self.mode in {"all", "rewrite"}

    # What an HTTP client's patch asks

    def take(self, method: str, uri: str, body: bytes) -> Interaction | None:
        """Return the recorded answer, or ``None`` where the request is to be sent.

        Raises:
            CassetteMiss: nothing was recorded, and nothing may be sent.
        """
        if self.sends_everything:
            return None
        sent = self._player.matching.normalized(body)
        try:
            stored = self._find(method, uri, sent)
            if stored is not None:
                return stored.interaction
        except CassetteError as error:
            raise self._signal(error) from None
        if not self.is_replay_only:
            return None
        raise self._signal(self._player.missed(method, uri, sent))

    def _find(
        self, method: str, uri: str, body: bytes | Mapping[str, Any]
    ) -> StoredInteraction | None:
        # While recording, what changed is to be sent; in replay another recording may answer.
        return self._player.find(method, uri, body, in_place=self.is_replay_only)

    def record(self, exchange: Exchange) -> None:
        """Keep a request that was sent and its answer, without its credentials.

        Raises:
            CassetteMiss: it cannot be written; carries the ``CassetteError``.
        """
        if not exchange.is_kept:
            return
        try:
            body = self._player.matching.normalized(exchange.request_body)
            interaction = kept_exchange(replace(exchange, request_body=body))
            with self._lock:
                self._writer.append(interaction, exchange.source, exchange.model)
                self._recorded.append(interaction)
        except CassetteError as error:
            raise self._signal(error) from None

    # What a provider of ours asks

    def answer(
        self, body: Mapping[str, Any], *, path: str, max_retries: int, address: str
    ) -> Reply | None:
        """Return the recorded reply, or ``None`` where the turn is to be made with the SDK.

        Raises:
            CassetteMissError: nothing was recorded, and nothing may be sent.
            ProviderError: a failure was recorded.
        """
        if self.sends_everything or not self._answers_turns:
            return None
        sent = self._player.matching.normalized_json(body)
        try:
            return replayed_turn(
                lambda: self._find("POST", path, sent),
                model=str(body.get("model")),
                max_retries=max_retries,
                address=address,
                missed=lambda: self._missed_turn(path, sent),
            )
        except _NotRecordedError:
            return None

    def _missed_turn(self, path: str, body: Mapping[str, Any]) -> Exception:
        # Asked beforehand, another thread could take the recording in between.
        return (
            self._player.missed("POST", path, body) if self.is_replay_only else _NotRecordedError()
        )

    def delivered(self, miss: CassetteMiss) -> None:
        """Note that the caller was told of ``miss``."""
        with self._lock:
            if miss in self._pending:
                self._pending.remove(miss)

    # The end

    def finish(self, *, keep: bool) -> None:
        """End the run.

        Args:
            keep: whether what was recorded becomes part of the cassette; otherwise it stays
                beside it in the partial file.

        Raises:
            CassetteError: the cassette cannot be written.
        """
        if keep:
            unplayed = [stored.key for _, stored in self.tape.unplayed]
            self._writer.promote(drop=unplayed if self._drop_unplayed else ())
        else:
            self._writer.leave()

    @property
    def partial(self) -> Path | None:
        """Where recordings of this run stand until the run ends well."""
        return self._writer.partial

    def settled(self) -> CassetteError | None:
        """Return the first miss that nobody was told of, and take all of them as told."""
        with self._lock:
            first = self._pending[0].error if self._pending else None
            self._pending.clear()
            return first

    def _signal(self, error: CassetteError) -> CassetteMiss:
        signal = CassetteMiss(error)
        with self._lock:
            self._pending.append(signal)
        return signal


@contextlib.contextmanager
def use_cassette(
    path: Path | str,
    *,
    mode: RecordMode = "none",
    record_command: str = "",
    http_clients: bool = True,
    keep_on_failure: bool = False,
    answers_turns: bool = True,
    drift: DriftPolicy = "fail",
    ignore: Sequence[str] = (),
    normalize: Normalize | None = None,
    diff_folder: Path | None = None,
    drop_unplayed: bool = False,
) -> Iterator[CassetteRun]:
    """Record or replay every request of this process, in all of its threads, while the block runs.

    Args:
        path: the cassette; its folder is made when something is recorded.
        mode: ``none`` replays and sends nothing; see ``RecordMode``.
        record_command: what the message of a miss says to run; a pytest command by default.
        http_clients: whether HTTP clients are patched (by vcrpy), so that requests made with any
            SDK are recorded and replayed. Without it only turns made by providers of this package
            are, and a block that only replays them starts in milliseconds.
        keep_on_failure: whether recordings are kept when the block raises. Otherwise they stay
            beside the cassette, in ``<name>.partial``.
        answers_turns: whether turns of our own providers skip the SDK where they are recorded.
        drift: what becomes of a request that is not what was recorded: ``fail``; ``warn`` replays
            in recorded order and lists it in the run's ``drifts``; ``ignore`` replays in recorded
            order without comparing bodies, as vcrpy does.
        ignore: paths into the request body that vary (``$.metadata.user_id``); they are neither
            compared nor kept.
        normalize: takes the JSON body of a request and returns the JSON that is compared and kept.
        diff_folder: where the whole of a long difference is written.
        drop_unplayed: whether recordings that nobody asked for leave the cassette when something
            new is recorded; the others keep their bytes.

    Yields:
        The run, with its counts.

    Raises:
        CassetteMissError: a request was never recorded, and the mode forbids sending it.
        CassetteUnreadableError: the file is no cassette.
        CassetteError: the cassette cannot be written, or a credential would be.
    """
    run = CassetteRun(
        Path(path),
        _checked(Path(path), mode),
        record_command=record_command,
        answers_turns=answers_turns,
        matching=Matching(drift, tuple(ignore), normalize, diff_folder),
        drop_unplayed=drop_unplayed,
    )
    failed = True
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(intercepting(run))
            if run.is_replay_only:
                stack.enter_context(blocked_sockets())
            if http_clients or not run.is_replay_only:
                _patch_clients(stack, run)
            yield run
        failed = False
    except CassetteMiss as signal:
        run.delivered(signal)
        raise signal.error from None
    finally:
        run.finish(keep=keep_on_failure or not failed)
    swallowed = run.settled()
    if swallowed is not None:
        raise swallowed


def _patch_clients(stack: contextlib.ExitStack, run: CassetteRun) -> None:
    from pytest_regen.cassettes.vcr_adapter import patched_clients  # noqa: PLC0415 - loads vcrpy

    stack.enter_context(patched_clients(run))


def _checked(path: Path, mode: RecordMode) -> RecordMode:
    if mode not in RECORD_MODES:
        raise UsageError(
            f"record mode {mode!r} is none",
            why=f"the modes are {', '.join(RECORD_MODES)}",
            hint="pass one of them",
        )
    if mode != "none" and path.suffix.lower() == ".json":
        raise UsageError(
            f"{path}: cassettes are recorded as YAML",
            why="JSON cassettes can be replayed, not written",
            hint="name the cassette .yaml",
        )
    return mode
