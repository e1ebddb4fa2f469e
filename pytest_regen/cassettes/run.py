"""A cassette in use: every request of the process is recorded or replayed."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pytest_regen.cassettes.files.reader import StoredInteraction, read_cassette
from pytest_regen.cassettes.files.storage import name_parts, note_folder, partial_path
from pytest_regen.cassettes.files.writer import CassetteWriter, is_answered
from pytest_regen.cassettes.headers import HeaderRules, at_origin
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.matching import DriftPolicy, Matching, Normalize, Scrub
from pytest_regen.cassettes.misses import MissedRequest, Player
from pytest_regen.cassettes.recording import ChangedValue, changed_values, clean_exchange
from pytest_regen.cassettes.replay import replay_turn
from pytest_regen.errors import CassetteError, UsageError
from pytest_regen.modes import RECORD_MODES, RecordMode
from pytest_regen.network import PassthroughOnly, check_hosts, closed_network, host_of, is_named
from pytest_regen.turns.anthropic import DEFAULT_BASE_URL
from pytest_regen.turns.interception import CassetteMiss, client_interceptors, intercepting
from pytest_regen.turns.values import DEFAULT_MODEL, Reply, TurnRequest
from pytest_regen.turns.wire import MESSAGES_PATH, request_body


class CassetteRun:
    """Plays the recordings of a cassette and adds to them; safe in any thread.

    It serves requests inside ``in_use``, and ``finish`` ends it. ``use_cassette`` does both.

    Args:
        path: the cassette.
        mode: whether to replay, to record, or both.
        record_command: the command that the message of a miss names; a pytest command by default.
        answers_turns: whether turns of this package's providers are answered without their SDK.
        matching: what counts as the same request, and what drift does.
        drop_unplayed: whether a mode that records removes recordings that were not played; never
            all of them.
        headers: the project's rules about headers, beyond the default.
        passthrough_hosts: hosts whose requests are neither recorded nor replayed nor missed.
        is_apart: whether only requests of the task or thread that puts it to use are served, so
            that several cassettes can be in use for turns that are taken at the same time.
        resumes: whether answers that a run which was killed or failed has left beside the cassette
            are played, and become part of it; where recordings are played at all.
        keeps_failures: whether refusals, failures and answers cut off are recorded: replayed, they
            end each run where they ended the first one.
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
        headers: HeaderRules | None = None,
        passthrough_hosts: Sequence[str] = (),
        is_apart: bool = False,
        resumes: bool = False,
        keeps_failures: bool = True,
    ) -> None:
        self.path = path
        self.mode = mode
        # A cassette that "rewrite" replaces need not be readable.
        file = None if mode == "rewrite" else read_cassette(path)
        self._writer = CassetteWriter(path, mode)
        records = mode == "new_episodes" or (mode == "once" and file is None)
        left = self._writer.take_left() if resumes and records else ()
        self.metadata: Mapping[str, Any] = file.metadata if file else self._writer.metadata
        self._player = Player(path, file, matching or Matching(), record_command, left)
        # A name that is too long is reported when something is to be written.
        self._player.is_left = file is None and os.path.exists(partial_path(path))
        self.index = self._player.index
        self.drifts = self._player.drifts
        """The requests that were answered by the recording of another one (``drift="warn"``)."""
        self._answers_turns = answers_turns
        self._drop_unplayed = drop_unplayed
        self._headers = headers
        self._is_apart = is_apart
        self._keeps_failures = keeps_failures
        self._passing = check_hosts(passthrough_hosts)
        self._writing = threading.Lock()
        """Held while a file is written; event loops never wait for it."""
        # A single thread, so that recordings are stored in the order in which answers ended.
        self._apart = ThreadPoolExecutor(1, "pytest-regen-cassette")
        self._refused: CassetteError | None = None
        """Why nothing can be recorded; found out when the block begins, as event loops cannot
        wait."""
        self._is_finished = False
        self._process = os.getpid()
        self.recorded = 0
        """How many requests were sent and recorded."""
        self.changed: list[ChangedValue] = []
        """Values that the cassette holds otherwise than they came, once the block ended."""
        self._pending: list[CassetteMiss] = []
        self.signals_misses = True
        """Whether a miss passes through clients as a signal that none retries, or as an error."""

    @property
    def _is_inherited(self) -> bool:
        """Whether this is a copy, in a process forked from the one that opened the cassette."""
        return os.getpid() != self._process

    @property
    def played(self) -> int:
        """How many recordings were played."""
        return self.index.played

    @property
    def unplayed(self) -> int:
        """How many recordings no request asked for."""
        return len(self.index.unplayed)

    @property
    def emulated(self) -> bool:
        """Whether the emulator, not the real API, gave any of the answers."""
        heads = (self.metadata, self._writer.metadata)
        return any("emulator" in str(head.get("source") or "") for head in heads)

    @property
    def is_replay_only(self) -> bool:
        """Whether no request can reach the network."""
        return self.mode == "none" or (self.mode == "once" and self._player.exists)

    @property
    def sends_everything(self) -> bool:
        """Whether recordings are not played."""
        return self.mode in {"all", "rewrite"}

    # What an HTTP client's patch asks

    def passes(self, uri: str) -> bool:
        """Whether requests to this address bypass the cassette."""
        return bool(self._passing) and is_named(host_of(uri), self._passing)

    def take(self, method: str, uri: str, body: bytes) -> Interaction | None:
        """Return the recorded answer, or ``None`` where the request is to be sent.

        Raises:
            CassetteMiss: nothing was recorded, and nothing may be sent; or the answer could not be
                stored.
        """
        try:
            if not self.sends_everything:
                matching = self._player.matching
                sent, uri = matching.normalize_body(body), matching.scrub_text(uri)
                stored = self._find(MissedRequest(method, uri, sent))
                if stored is not None:
                    return _at_server(stored.interaction, uri)
            refusal = self._refused
            if refusal is None and self._is_inherited:
                refusal = CassetteError(
                    f"{self.path.name} was opened by another process, and this one records "
                    "nothing into it",
                    why="what a forked process records is lost to the one it was forked from",
                    hint="record in one process, or open a cassette in the one that asks",
                )
            if refusal is not None:
                raise refusal
        except CassetteError as error:
            raise self.signal(error) from None
        return None

    def _find(self, request: MissedRequest) -> StoredInteraction | None:
        """Return the recording that answers; ``None`` where the request is to be sent."""
        # In place, because a changed request is sent only while recording.
        stored = self._player.find(request, in_place=self.is_replay_only)
        if stored is None and self.is_replay_only:
            raise self._player.miss(request)
        return stored

    def record(self, exchange: Interaction) -> None:
        """Store a request that was sent and its answer, without credentials.

        Raises:
            CassetteMiss: it cannot be written; carries the ``CassetteError``.
        """
        # Not one that the connection cut off, because only of a stream the beginning is of use.
        if exchange.end == "cut" and not exchange.is_stream:
            return
        matching = self._player.matching
        try:
            sent = replace(exchange, request_body=matching.normalize_body(exchange.request_body))
            clean = clean_exchange(sent, self._headers)
            # By now the answer is decoded.
            answer = matching.scrub_body(clean.response_body)
            clean = replace(clean, uri=matching.scrub_text(clean.uri), response_body=answer)
            if not self._keeps_failures and not is_answered(clean):
                return
            changed = changed_values(sent, _at_server(clean, sent.uri))
            with self._writing:
                if not self._is_finished:
                    self._writer.append(clean)
                    self.recorded += 1
                    self.changed += changed
                    return
        except CassetteError as error:
            raise self.signal(error) from None
        if other := self._run_in_use_instead():
            other.record(exchange)

    def record_apart(self, exchange: Interaction) -> Future[None]:
        """Do what ``record`` does in another thread: event loops must not wait for a file.

        ``finish`` waits until all of it is done.
        """
        try:
            return self._apart.submit(self.record, exchange)
        except RuntimeError:
            # The block ended meanwhile.
            if other := self._run_in_use_instead():
                return other.record_apart(exchange)
            ended: Future[None] = Future()
            ended.set_result(None)
            return ended

    def _run_in_use_instead(self) -> "CassetteRun | None":
        """Return another run of the same cassette that is still in use, if any.

        If several threads have a block each, the one that began last serves all of them, and may
        end first.
        """
        runs = (run for run in client_interceptors() if isinstance(run, CassetteRun))
        return next((run for run in runs if run.path == self.path and run is not self), None)

    # What this package's providers ask

    def answer(
        self, body: Mapping[str, Any], *, path: str, max_retries: int, address: str
    ) -> Reply | None:
        """Return the recorded reply, or ``None`` where the turn is to be made with the SDK.

        Raises:
            CassetteMissError: nothing was recorded, and nothing may be sent.
            ProviderError: a failure was recorded.
        """
        if self.sends_everything or not self._answers_turns or self.passes(f"//{address}"):
            return None
        sent = MissedRequest("POST", path, self._player.matching.normalize_json(body))
        return replay_turn(
            lambda: self._find(sent),
            model=str(body.get("model")),
            max_retries=max_retries,
            address=address,
        )

    def delivered(self, miss: CassetteMiss) -> None:
        """Note that ``miss`` has reached the caller."""
        with contextlib.suppress(ValueError):
            self._pending.remove(miss)

    # Beginning and end

    @contextlib.contextmanager
    def in_use(self, *, http_clients: bool) -> Iterator[None]:
        """Let the cassette serve every request of the process while the block runs.

        One that is apart serves those of this task or thread alone.

        Args:
            http_clients: whether to patch HTTP clients even if nothing is to be recorded.
        """
        # Now, because a message may be needed inside an event loop.
        note_folder()
        if not self.is_replay_only:
            self._refused = self._writer.refusal()
        with contextlib.ExitStack() as stack:
            serves_clients = http_clients or not self.is_replay_only
            stack.enter_context(
                intercepting(self, serves_clients=serves_clients, is_apart=self._is_apart)
            )
            if self.is_replay_only:
                guard = PassthroughOnly(self._passing)
                stack.enter_context(closed_network(guard, is_apart=self._is_apart))
            if serves_clients:
                from pytest_regen.cassettes.clients.vcr_patches import patch_clients

                stack.enter_context(patch_clients(self))
            yield

    def write_differences(self) -> None:
        """Write the files of long differences."""
        self._player.files.write()

    def finish(self, *, keep: bool) -> None:
        """End the run.

        Args:
            keep: whether the new recordings become part of the cassette; otherwise they stay in the
                partial file beside it.

        Raises:
            CassetteError: the cassette cannot be written.
        """
        self.write_differences()
        self._apart.shutdown()
        with self._writing:
            self._is_finished = True
        if keep:
            drops = self._drop_unplayed and not self.is_replay_only
            unplayed = self.index.unplayed if drops else ()
            self._writer.promote(drop=[stored.key for _, stored in unplayed])
        else:
            self._writer.leave()

    def take_pending_miss(self) -> CassetteError | None:
        """Return the first miss that reached no caller, and count all of them as reported."""
        pending = self._pending[:]
        del self._pending[: len(pending)]
        return pending[0].error if pending else None

    def signal(self, error: CassetteError) -> CassetteMiss | CassetteError:
        """Return what carries ``error`` past clients that retry; it is also reported at the end."""
        signal = CassetteMiss(error)
        self._pending.append(signal)
        # A process pool waits forever for a worker that ended with anything but an Exception.
        return signal if self.signals_misses and not self._is_inherited else error


class ReplayProvider:
    """Answers turns from a cassette, each recording once, exactly as the SDK would through vcrpy.

    Args:
        path: the cassette.
        model: model of requests that name none.
        max_retries: how often a recorded failure is followed by the next recording of that request.
        base_url: the address the turns were recorded at, as in ``AnthropicProvider``. Its path must
            match; its host appears in messages about recorded failures.
        matching: what counts as the same request, and what drift does.

    Raises:
        CassetteUnreadableError: there is a file, but it is not a cassette.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: str | None = None,
        max_retries: int = 2,
        base_url: str = DEFAULT_BASE_URL,
        matching: Matching | None = None,
    ) -> None:
        self.path = Path(path)
        self._model = model
        self._max_retries = max_retries
        server = urlsplit(base_url)
        self._uri = server.path.rstrip("/") + MESSAGES_PATH
        self._address = server.netloc.rpartition("@")[2] or base_url
        self._run = CassetteRun(self.path, matching=matching)

    def send(self, request: TurnRequest) -> Reply:
        """Return the recorded reply.

        Raises:
            CassetteMissError: this request was never recorded, or is used up.
            ProviderError: the recording is a failure.
        """
        body = request_body(request)
        body["model"] = request.model or self._model or DEFAULT_MODEL
        try:
            # A run that only replays has a reply or raises.
            return cast(
                "Reply",
                self._run.answer(
                    body, path=self._uri, max_retries=self._max_retries, address=self._address
                ),
            )
        finally:
            self._run.write_differences()

    async def asend(self, request: TurnRequest) -> Reply:
        """Return the recorded reply; raises as ``send`` does."""
        return self.send(request)


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
    scrub: Scrub | None = None,
    diff_folder: Path | None = None,
    drop_unplayed: bool = False,
    keep_headers: Sequence[str] = (),
    drop_headers: Sequence[str] = (),
    passthrough_hosts: Sequence[str] = (),
) -> Iterator[CassetteRun]:
    """Record or replay every request of this process, in all of its threads, while the block runs.

    Args:
        path: the cassette; its folder is made when something is recorded.
        mode: ``none`` replays and sends nothing; see ``RecordMode``.
        record_command: the command that the message of a miss names; a pytest command by default.
        http_clients: whether HTTP clients are patched (by vcrpy), so that requests made with any
            SDK are recorded and replayed. Without it only turns made by providers of this package
            are, and a block that only replays them starts in milliseconds.
        keep_on_failure: whether recordings are kept when the block raises. Otherwise they stay
            beside the cassette, in ``<name>.partial``.
        answers_turns: whether recorded turns of this package's providers skip the SDK.
        drift: what happens to a request that is not as recorded: ``fail``; ``warn`` replays
            in recorded order and lists it in the run's ``drifts``; ``ignore`` replays in recorded
            order without comparing bodies, as vcrpy does.
        ignore: paths into the request body that vary (``$.metadata.user_id``); they are neither
            compared nor stored.
        normalize: takes the JSON body of a request and returns the JSON that is compared and
            stored.
        scrub: takes each text of requests and answers and returns it without what must not be
            stored; credentials are removed anyway.
        diff_folder: where long differences are written in full.
        drop_unplayed: whether a block that may record and ends successfully removes the recordings
            that were not played. The others keep their bytes, and never all are removed.
        keep_headers: headers of requests that are kept beside those that always are, by name or
            pattern (``x-feature-*``). Those of answers are all kept; private ones never.
        drop_headers: headers of requests and answers that are not kept.
        passthrough_hosts: hosts (``example.com``, ``*.example.com``) whose requests are neither
            recorded nor replayed nor missed: in a mode that records they are sent; in ``none`` only
            those to this machine (``localhost``) are; others fail as without a network.

    Yields:
        The run, with its counts.

    Raises:
        CassetteMissError: a request was never recorded, and the mode forbids sending it.
        CassetteUnreadableError: the file is not a cassette.
        CassetteError: the cassette cannot be written, or a credential would be.
    """
    run = CassetteRun(
        Path(path),
        _check_mode(Path(path), mode),
        record_command=record_command,
        answers_turns=answers_turns,
        matching=Matching(drift, tuple(ignore), normalize, scrub, diff_folder),
        drop_unplayed=drop_unplayed,
        headers=HeaderRules(keep_headers, drop_headers),
        passthrough_hosts=passthrough_hosts,
    )
    with _block(run, http_clients=http_clients, keep_on_failure=keep_on_failure):
        yield run


@contextlib.contextmanager
def _block(run: CassetteRun, *, http_clients: bool, keep_on_failure: bool) -> Iterator[None]:
    failed = True
    try:
        with run.in_use(http_clients=http_clients):
            yield
        failed = False
    except CassetteMiss as signal:
        run.delivered(signal)
        raise signal.error from None
    except Exception as failure:
        hidden = run.take_pending_miss()
        if hidden is not None:
            # The block may show only what the client made of the miss.
            failure.add_note(str(hidden))
        raise
    finally:
        run.finish(keep=keep_on_failure or not failed)
    swallowed = run.take_pending_miss()
    if swallowed is not None:
        raise swallowed


@contextlib.contextmanager
def journal(path: Path | str) -> Iterator[CassetteRun]:
    """Record every answer of the block; run again, the block replays them and asks for the rest.

    The cassette keeps what was answered however the block ends: interrupted, failed or killed.
    Requests that were refused, failed or cut off are sent again. Delete the file to start anew.

    Args:
        path: the cassette; its folder is made when something is recorded.

    Raises:
        CassetteUnreadableError: the file is not a cassette.
        CassetteError: the cassette cannot be written, or a credential would be.
    """
    run = CassetteRun(
        Path(path),
        _check_mode(Path(path), "new_episodes"),
        resumes=True,
        keeps_failures=False,
    )
    with _block(run, http_clients=True, keep_on_failure=True):
        yield run


def _at_server(recorded: Interaction, uri: str) -> Interaction:
    """Return a recorded answer whose addresses point to the server that is asked now."""
    headers = at_origin(recorded.response_headers, recorded.uri, uri)
    same = headers is recorded.response_headers
    return recorded if same else replace(recorded, response_headers=headers)


def _check_mode(path: Path, mode: RecordMode) -> RecordMode:
    if mode not in RECORD_MODES:
        raise UsageError(
            f"unknown record mode {mode!r}",
            why=f"the modes are {', '.join(RECORD_MODES)}",
            hint="pass one of them",
        )
    if mode != "none" and name_parts(path)[1] == ".json":
        raise UsageError(
            f"{path}: cassettes are recorded as YAML",
            why="JSON cassettes can be replayed, not written",
            hint="name the cassette .yaml",
        )
    return mode
