"""The message for a request without a recording: what it is, what is nearest, where they differ."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.canonical import text_hash
from pytest_regen.cassettes.files.reader import StoredInteraction
from pytest_regen.cassettes.files.storage import display_path, partial_path
from pytest_regen.cassettes.interactions import Interaction, by_name, form_fields
from pytest_regen.cassettes.json_bodies import at_any_index, member_path
from pytest_regen.cassettes.matching import Matching, RecordingIndex
from pytest_regen.cassettes.scrubbing import (
    is_private_parameter,
    scrub_lines,
    scrub_path,
    scrub_query,
    scrub_value,
)
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import CassetteError, CassetteMissError
from pytest_regen.network import host_of, is_loopback
from pytest_regen.strict_json import json_or_none

Missed = TypeVar("Missed", bound=CassetteError)

_SHOWN = 60
"""How many characters of a value are shown."""

_ABSENT = "(absent)"

_BEFORE = 30
"""How many characters are shown before the place where two texts differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the request is not what was recorded."""

    path: str
    """``query.rows``, ``form.to``, or in a body of JSON its JSONPath: ``$.messages[2].content``."""
    recorded: str
    """The recorded value, shortened; ``(absent)`` if there is no value."""
    sent: str
    is_drawn: bool = False
    """Whether both values look drawn by chance: ids of calls, times."""

    def __str__(self) -> str:
        return f"{self.path}: recorded {self.recorded}, sent {self.sent}"

    @property
    def place(self) -> str:
        """The path without list positions, as other requests have it: ``$.messages[*].id``."""
        return at_any_index(self.path)

    @property
    def cause(self) -> str:
        """The difference in words that other requests share: ``$.messages[*].content differs``."""
        if _ABSENT not in (self.recorded, self.sent):
            return f"{self.place} differs"
        return f"{self.place} is {'new' if self.recorded == _ABSENT else 'gone'}"

    @property
    def is_cut(self) -> bool:
        """Whether one of the values is shown shortened."""
        return any(
            text.startswith("...") or text.endswith("...") for text in (self.recorded, self.sent)
        )


def differences(recorded: Any, sent: Any, path: str = "$") -> Iterator[Difference]:
    """Yield the places where ``sent`` differs from ``recorded``, outermost first.

    Args:
        recorded: a JSON value, or the members of a request.
        sent: the other one.
        path: where the values stand; empty for the members of a request.
    """
    if isinstance(recorded, list) and isinstance(sent, list):
        recorded, sent = dict(enumerate(recorded)), dict(enumerate(sent))
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        for name in dict.fromkeys([*recorded, *sent]):
            step = member_path(path, name) if path else name
            if name not in sent:
                yield Difference(step, _short(_json_text(recorded[name])), _ABSENT)
            elif name not in recorded:
                yield Difference(step, _ABSENT, _short(_json_text(sent[name])))
            else:
                yield from differences(recorded[name], sent[name], step)
    elif recorded != sent or type(recorded) is not type(sent):
        old_text, new_text = _excerpts(recorded, sent)
        yield Difference(path, old_text, new_text, _is_drawn(recorded) and _is_drawn(sent))


_VOLATILE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b(?:[a-z]+_)?(?=\w*\d)[A-Za-z0-9]{12,}\b|\b\d{6,}\b",
    re.IGNORECASE,
)
"""What may be another one in each run: ids, times."""


def _is_drawn(value: object) -> bool:
    """Whether a value looks drawn by chance; a day or a number may as well be meant."""
    is_volatile = isinstance(value, str) and _VOLATILE.fullmatch(value) is not None
    return is_volatile and not str(value).replace("-", "").isdigit()


def _excerpts(recorded: object, sent: object) -> tuple[str, str]:
    """Return both values; long texts are cut around the place where they differ."""
    if not isinstance(recorded, str) or not isinstance(sent, str):
        return _short(_json_text(recorded)), _short(_json_text(sent))
    same = _common_length(recorded, sent, min(len(recorded), len(sent)))
    start = max(0, same - _BEFORE)
    return _cut(recorded, start), _cut(sent, start)


def _cut(text: str, start: int) -> str:
    excerpt = text[start : start + _SHOWN]
    before = "..." if start else ""
    after = "..." if start + _SHOWN < len(text) else ""
    return f"{before}{_json_text(excerpt)}{after}"


def _json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON that any stream can print: lone surrogates stay escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def full_diff(recorded: Any, sent: Any) -> str:
    """Return both values as a unified diff of their laid-out JSON, uncut."""
    from difflib import unified_diff

    old, new = (_json_text(value, indent=2).splitlines() for value in (recorded, sent))
    return "\n".join([*unified_diff(old, new, "recorded", "sent", lineterm="", n=10_000), ""])


def distance(recorded: Any, sent: Any) -> float:
    """Return how far apart two JSON values are: 0.0 for equal, 1.0 for nothing in common."""
    if isinstance(recorded, list) and isinstance(sent, list):
        recorded, sent = dict(enumerate(recorded)), dict(enumerate(sent))
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        every, both = {*recorded, *sent}, recorded.keys() & sent.keys()
        apart = sum(distance(recorded[name], sent[name]) for name in both)
        return (apart + len(every) - len(both)) / max(1, len(every))
    if isinstance(recorded, str) and isinstance(sent, str):
        return _text_distance(recorded, sent)
    return 0.0 if recorded == sent else 1.0


def _text_distance(recorded: str, sent: str) -> float:
    """Return the share of the longer text outside the ends both texts have in common."""
    longer = max(len(recorded), len(sent))
    shorter = min(len(recorded), len(sent))
    if longer == 0:
        return 0.0
    head = _common_length(recorded, sent, shorter)
    tail = _common_length(recorded[::-1], sent[::-1], shorter - head)
    return (longer - head - tail) / longer


def _common_length(left: str, right: str, limit: int) -> int:
    """Return the length of the common start, by bisection: slices compare in C."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class DiffFiles:
    """The long differences of one cassette in use.

    They are written later, because a difference may be found inside an event loop, which must not
    wait for a file.

    Args:
        folder: where the files go; ``None`` for nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._noted: dict[Path, tuple[object, object]] = {}

    def note(self, cassette: Path, number: int, recorded: object, sent: object) -> Path | None:
        """Return the file that will hold a difference, or ``None`` where none is written.

        Args:
            cassette: the cassette.
            number: of the recording compared, from 1.
            recorded: what it holds, scrubbed.
            sent: what was sent, scrubbed.
        """
        if self._folder is None:
            return None
        name = re.sub(r"[^\w.-]", "_", cassette.stem)[:100]
        # Tests that share a cassette differ from the same recording in ways of their own.
        digest = text_hash(ascii((recorded, sent)))[-8:]
        file = self._folder / f"{name}-{number}-{digest}.txt"
        self._noted[file] = (recorded, sent)
        return file

    def write(self) -> None:
        """Write what was noted; a file that cannot be written is skipped."""
        noted, self._noted = self._noted, {}
        for file, (recorded, sent) in noted.items():
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(scrub_text(full_diff(recorded, sent)), "utf-8")


_SERVICES = {
    "/messages": ("anthropic", "ANTHROPIC_API_KEY"),
    "/chat/completions": ("openai", "OPENAI_API_KEY"),
    "/api/chat": ("ollama", ""),
}
"""How providers are named, and what holds the key, by how paths of APIs end."""


def _service_of(uri: str) -> tuple[str, str]:
    path = urlsplit(uri).path
    return next((names for end, names in _SERVICES.items() if path.endswith(end)), ("", ""))


def _record_command(mode: str, request: "MissedRequest") -> str:
    _, key = _service_of(request.uri)
    command = f'record it with mode="{mode}", or in pytest with --regen-record {mode}'
    return f"{command}, and with {key} set" if key else command


_CANDIDATES = 25
"""How many recordings are compared with a missed request; more would take too long."""

_DIFFERENCES = 5
_CAUSES = 50
_EXCERPT = 60


COMPARED = frozenset({"method", "path", "query", "body"})
"""What of requests is compared, where vcrpy does not compare them."""

_ADDRESS = frozenset({"scheme", "host", "path", "query"})
_NO_BODY = _ADDRESS | {"method", "uri", "port", "headers"}
"""Matchers of vcrpy that look at no body; one that a suite brings may."""


@dataclass(frozen=True, slots=True)
class MissedRequest:
    """A request as it is looked up: normalized."""

    method: str
    uri: str
    body: bytes | Mapping[str, Any]

    def members(self, compared: Collection[str] = COMPARED) -> dict[str, Any]:
        """Return what is compared, by the names that differences begin with; no credentials."""
        parts = urlsplit(self.uri)
        query = parse_qsl(scrub_query(parts.query), keep_blank_values=True)
        line = {
            "method": self.method.upper(),
            "scheme": parts.scheme,
            "host": parts.netloc.rpartition("@")[2],
            "path": scrub_path(self.path),
            "query": by_name(sorted(query)),
        }
        compared_members: dict[str, Any] = {name: line[name] for name in line if name in compared}
        if not self.body or "body" not in compared:
            return compared_members
        value = self.json
        if value is not None or not isinstance(self.body, bytes):
            return {**compared_members, "$": value}
        text = scrub_lines(self.body.decode("utf-8", "replace"))
        fields = form_fields(text.encode())
        return (
            {**compared_members, "$": text}
            if fields is None
            else {**compared_members, "form": fields}
        )

    @property
    def json(self) -> Any:
        """The body as JSON, or ``None``."""
        return json_or_none(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def host(self) -> str:
        """The host asked; empty for a turn of this package's providers, which have only a path."""
        return host_of(self.uri)

    @property
    def path(self) -> str:
        """The path asked for."""
        return urlsplit(self.uri).path or "/"

    @property
    def place(self) -> str:
        """Method and address, without query and credentials."""
        parts = urlsplit(self.uri)
        server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
        return f"{self.method.upper()} {server}{scrub_path(self.path)}"

    def same_place(self, recorded: Interaction) -> bool:
        """Whether a recording has the same method and path."""
        return all(self._same(recorded)[:2])

    def likeness(self, recorded: Interaction) -> int:
        """Return how many of method, path and host are those of a recording."""
        return sum(self._same(recorded))

    def _same(self, recorded: Interaction) -> tuple[bool, bool, bool]:
        """Return whether a recording has the same method, path and host."""
        other = urlsplit(recorded.uri)
        # What asks this machine may have asked another one, and turns name no host.
        is_anywhere = not self.host or is_loopback(self.host)
        return (
            recorded.method.upper() == self.method.upper(),
            (other.path or "/") == self.path,
            is_anywhere or other.hostname == self.host,
        )

    def __str__(self) -> str:
        return scrub_text(f"{self.method.upper()} {self.path}") + _subject(self.json)


IGNORING = "ignore = [{}] in [tool.pytest-regen.cassettes], if that differs in each run"
"""What to write so that a value drawn by chance is neither compared nor stored."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A request, and how it differs from the recording that answered it, or is nearest to it."""

    request: str
    """Method, path, model, turn and last words."""
    interaction: int
    """Number of the recording in the file, from 1."""
    line: int
    differences: tuple[Difference, ...]
    """The first differences."""
    more: int
    diff_file: Path | None = None
    causes: tuple[str, ...] = ()
    """All differences, in words that other drifts share: ``$.messages[*].content differs``."""
    ignorable: tuple[str, ...] = ()
    """Where both values look drawn by chance."""
    is_drawn: bool = False
    """Whether that is all: a new recording would hold another value again."""

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        lines = [f"{self.request} was given interaction {self.interaction}{line}", *self.lines]
        return "\n".join(lines)

    @property
    def lines(self) -> list[str]:
        """The differences, one in each line."""
        lines = [f"    {difference}" for difference in self.differences]
        if self.more:
            lines.append(f"    and {self.more} more")
        if self.diff_file is not None:
            lines.append(f"    in full: {display_path(self.diff_file)}")
        return lines

    def next(self, command: str, setting: str = IGNORING) -> str:
        """Return what to do, in lines: record with ``command``, ignore what is drawn, or both."""
        paths = ", ".join(map(json.dumps, self.ignorable))
        lines = [*([] if self.is_drawn else [command]), *([setting.format(paths)] if paths else [])]
        return "\n        ".join(lines)


def drift_between(
    path: Path, request: MissedRequest, number: int, recorded: bytes, files: DiffFiles
) -> Drift | None:
    """Return how the body of a request differs from a recorded one; ``None`` if it does not."""
    if request.body == recorded:  # nearly always, and cheaper to see than to parse both
        return None
    other, compared = replace(request, body=recorded), frozenset({"body"})
    old, new = other.members(compared), request.members(compared)
    if all(isinstance(body.get("$", ""), str) and "form" not in body for body in (old, new)):
        return None  # text, which may be anything
    drift = drift_of(path, request, other, at=(number, 0), files=files, compared=compared)
    return drift if drift.differences else None


def as_asked(stored: StoredInteraction, matching: Matching) -> MissedRequest:
    """Return a recorded request as it would be looked up."""
    recorded = stored.interaction
    body = matching.normalize_body(recorded.request_body)
    return MissedRequest(recorded.method, matching.normalize_uri(recorded.uri), body)


def drift_of(
    path: Path,
    request: MissedRequest,
    other: MissedRequest,
    *,
    at: tuple[int, int],
    files: DiffFiles,
    compared: Collection[str] = COMPARED,
) -> Drift:
    """Return how a request differs from the recorded one with the number and line ``at``."""
    recorded, sent = other.members(compared), request.members(compared)
    try:
        # Scrub before cutting: half a credential cannot be recognized.
        recorded, sent = scrub_value(recorded), scrub_value(sent)
        every = list(differences(recorded, sent, ""))
    except RecursionError:
        every = [Difference("$", "nested too deeply", "nested too deeply to be compared")]
    first, more = tuple(every[:_DIFFERENCES]), max(0, len(every) - _DIFFERENCES)
    is_long = more or any(difference.is_cut for difference in first)
    file = files.note(path, at[0], recorded, sent) if is_long else None
    causes = tuple(islice(dict.fromkeys(difference.cause for difference in every), _CAUSES))
    drawn = [found for found in every if found.is_drawn and found.path.startswith("$")]
    ignorable = tuple(islice(dict.fromkeys(found.place for found in drawn), _DIFFERENCES))
    is_drawn = bool(drawn) and len(drawn) == len(every)
    return Drift(str(request), *at, first, more, file, causes, ignorable, is_drawn)


def miss(
    path: Path,
    index: RecordingIndex,
    request: MissedRequest,
    *,
    key: str,
    exists: bool,
    is_left: bool,
    matching: Matching,
    files: DiffFiles,
    command: str = "",
    match_on: Collection[str] = COMPARED,
) -> CassetteMissError:
    """Return the error for a request that was never recorded; no file is touched meanwhile.

    Args:
        path: the cassette.
        index: its recordings.
        request: the request.
        key: its key.
        exists: whether there is a cassette at all.
        is_left: whether a failed run left a partial file.
        matching: how bodies are compared.
        files: where a long difference goes.
        command: what to run so that it is recorded.
        match_on: what of requests is compared, as vcrpy names it.
    """
    if not exists:
        why = "replay sends nothing over the network"
        if is_left:
            left = display_path(partial_path(path))
            why += f"; {left} was left by a run in which the test did not pass, or was skipped"
        return CassetteMissError(
            f"no cassette at {display_path(path)}: {request} is not recorded yet",
            why=why,
            hint=command or _record_command("once", request),
            host=request.host,
            causes=("no cassette",),
        )
    place = f"{display_path(path)}: {len(index)} recorded, {index.played} played"
    hint = command or _record_command("new_episodes", request)
    compared = {*match_on} | (_ADDRESS if "uri" in match_on else set())
    compared |= {"body"} if compared - _NO_BODY else set()
    if index.knows(key) and all(stored.key != key for _, stored in index.unplayed):
        why = f"the same request was recorded and is played already, each answers once ({place})"
        causes: tuple[str, ...] = ("a request is made more often than it was recorded",)
    elif (nearest_pair := _nearest(index, request, matching, compared)) is None:
        every = (as_asked(stored, matching).place for _, stored in index.numbered)
        places = list(dict.fromkeys(every))
        listed = ", ".join(places[:_DIFFERENCES]) + (", ..." if places[_DIFFERENCES:] else "")
        why = f"nothing is recorded for {request.place}; the cassette has {listed} ({place})"
        causes = (
            f"nothing is recorded for {request.method.upper()} {request.host or request.path}",
        )
    else:
        number, stored = nearest_pair
        at, other = (number, stored.line), as_asked(stored, matching)
        nearest = drift_of(path, request, other, at=at, files=files, compared=compared)
        hint = nearest.next(
            hint, IGNORING if command else "ignore=[{}], if that differs in each run"
        )
        unseen = ", ".join(sorted(compared - COMPARED - _NO_BODY | compared & {"headers"}))
        hidden = f"match_on compares {unseen}" if unseen else "a credential or binary data differs"
        query = parse_qsl(urlsplit(request.uri).query) if "query" in compared else []
        private = [name for name, value in query if is_private_parameter(name, value)]
        if private and not nearest.lines and not unseen:
            hidden = f"query.{private[0]}: a credential, and another one than was recorded"
            hint = f"return filter_query_parameters={private} from the fixture vcr_config"
        line = f" at {path.name}:{stored.line}" if stored.line else ""
        lines = nearest.lines or [f"    {hidden}"]
        why = "\n".join([f"nearest is interaction {number}{line} ({place})", *lines])
        causes = nearest.causes or (hidden,)
    error = CassetteMissError(
        f"{path.name} has no answer to {request}",
        why=scrub_text(why),
        hint=hint,
        host=request.host,
        causes=tuple(causes),
    )
    error.recorded_with = _other_provider(index, request, matching.normalize_body)
    return error


def _nearest(
    index: RecordingIndex, request: MissedRequest, matching: Matching, compared: Collection[str]
) -> tuple[int, StoredInteraction] | None:
    """Return the recording nearest to the request; the first of several equally near."""
    sent = request.members(compared)

    def apart(pair: tuple[int, StoredInteraction]) -> tuple[int, float]:
        likeness = -request.likeness(pair[1].interaction)
        with suppress(RecursionError):
            return likeness, distance(as_asked(pair[1], matching).members(compared), sent)
        return likeness, 1.0

    for pairs in (index.unplayed, index.numbered):
        like = (pair for pair in pairs if request.likeness(pair[1].interaction) > 1)
        nearest = min(islice(like, _CANDIDATES), key=apart, default=None)
        if nearest is not None:
            return nearest
    return None


def _other_provider(
    index: RecordingIndex, request: MissedRequest, normalized: Callable[[bytes], bytes]
) -> str:
    """Return which other provider was asked the same; empty where none was."""
    sent = request.json
    for _, stored in islice(index.unplayed, _CANDIDATES):
        recorded = json_or_none(normalized(stored.interaction.request_body))
        service, _ = _service_of(stored.interaction.uri)
        if service and _last_words(recorded) and _last_words(recorded) == _last_words(sent):
            model = recorded.get("model")
            if (service, model) != (_service_of(request.uri)[0], sent.get("model")):
                return scrub_text(f"{service}:{model}")
    return ""


def _last_words(body: object) -> str:
    messages = body.get("messages") if isinstance(body, Mapping) else None
    return _words(messages[-1]) if isinstance(messages, list) and messages else ""


def with_exemption(error: Missed, argument: str = "passthrough_hosts") -> Missed:
    """Return the error for a miss that no caller waited for, with the words that exempt its host.

    Args:
        error: the miss.
        argument: the argument that takes the host, with the text before it, such as
            ``@pytest.mark.…(``.
    """
    host = scrub_text(error.host) if isinstance(error, CassetteMissError) else ""
    if not host:
        return error
    end = ")" if "(" in argument else ""
    line = f'{argument}=["{host}"]{end}'
    more = f"no caller waited for the answer; if {host} does not matter to the test: {line}"
    exempted = copy(error)
    exempted.why = f"{error.why}\n        {more}" if error.why else more
    return exempted


def _subject(sent: object) -> str:
    """Return what identifies a request for people: its model, turn and last words."""
    if not isinstance(sent, Mapping) or not isinstance(sent.get("messages"), list):
        return ""
    messages = sent["messages"]
    turn = sum(isinstance(m, Mapping) and m.get("role") == "user" for m in messages)
    # Scrub before cutting: half a credential cannot be recognized.
    words = scrub_text(" ".join(_words(messages[-1]).split())) if messages else ""
    excerpt = words if len(words) <= _EXCERPT else words[:_EXCERPT] + "..."
    return f" (model {scrub_text(str(sent.get('model')))}, turn {turn}: {excerpt!r})"


def _words(message: object) -> str:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        texts = [str(b.get("text") or "") for b in content if isinstance(b, Mapping)]
        return " ".join(texts)
    return str(content or "")
