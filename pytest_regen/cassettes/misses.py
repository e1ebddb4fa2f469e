"""The message for a request without a recording: what it is, what is nearest, where they differ."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pytest_regen.canonical import text_hash
from pytest_regen.cassettes import scrubbing
from pytest_regen.cassettes.files.reader import CassetteFile, StoredInteraction
from pytest_regen.cassettes.files.storage import display_path, partial_path
from pytest_regen.cassettes.interactions import Interaction, by_name, form_fields, keys_of
from pytest_regen.cassettes.json_bodies import at_any_index, limited_depth, member_path
from pytest_regen.cassettes.matching import Matching, RecordingIndex
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import CassetteMissError
from pytest_regen.network import host_of, is_loopback
from pytest_regen.strict_json import json_or_none

_SHOWN = 60
"""How many characters of a value are shown."""

_ABSENT = "(absent)"
_CUT = "..."
_WORDS = re.compile(r"\w+|[^\w\s]")

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


def differences(recorded: Any, sent: Any, path: str = "$") -> Iterator[Difference]:
    """Yield the places where ``sent`` differs from ``recorded``, outermost first.

    Args:
        recorded: a JSON value, or the members of a request.
        sent: the other one.
        path: where the values stand; empty for the members of a request.
    """
    if isinstance(recorded, list) and isinstance(sent, list):
        # Items by number, because one that is missing is told as a member is.
        recorded, sent = dict(enumerate(recorded)), dict(enumerate(sent))
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        for name in dict.fromkeys([*recorded, *sent]):
            step = member_path(path, name) if path else name
            if name not in sent:
                yield Difference(step, _excerpt(recorded[name]), _ABSENT)
            elif name not in recorded:
                yield Difference(step, _ABSENT, _excerpt(sent[name]))
            else:
                yield from differences(recorded[name], sent[name], step)
    elif recorded != sent or type(recorded) is not type(sent):
        texts = [value for value in (recorded, sent) if isinstance(value, str)]
        signs = enumerate(zip(*texts, strict=False) if len(texts) > 1 else ())
        same = next((n for n, (old, new) in signs if old != new), min(map(len, texts), default=0))
        start = max(0, same - _BEFORE) if len(texts) > 1 else 0
        # What may be another one in each run; a day or a number may as well be meant.
        are_drawn = len(texts) > 1 and all(map(_VOLATILE.fullmatch, texts))
        is_drawn = are_drawn and not any(text.replace("-", "").isdigit() for text in texts)
        yield Difference(path, _excerpt(recorded, start), _excerpt(sent, start), is_drawn)


_VOLATILE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b(?:[a-z]+_)?(?=\w*\d)[A-Za-z0-9]{12,}\b|\b\d{6,}\b",
    re.IGNORECASE,
)
"""Ids and times."""


def _excerpt(value: object, start: int = 0) -> str:
    """Return a value shortened; a text from ``start`` on."""
    text = value if isinstance(value, str) else _json_text(value)
    piece = text[start : start + _SHOWN]
    piece = _json_text(piece) if isinstance(value, str) else piece
    return f"{_CUT if start else ''}{piece}{_CUT if start + _SHOWN < len(text) else ''}"


def _json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON that any stream can print: lone surrogates stay escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def distance(recorded: Any, sent: Any) -> float:
    """Return how far apart two JSON values are: 0.0 for equal words, 1.0 for none in common."""
    from difflib import SequenceMatcher

    # By counting words, because their order would take too long to compare in long prompts.
    old, new = (json.dumps(value, default=str) for value in (recorded, sent))
    matcher = SequenceMatcher(None, _WORDS.findall(old), _WORDS.findall(new), autojunk=False)
    return float(1.0 - matcher.quick_ratio())


class DiffFiles:
    """The long differences of one cassette in use.

    They are written later, because a difference may be found inside an event loop, which must not
    wait for a file.

    Args:
        folder: where the files go; ``None`` for nowhere.
        cassette: the cassette.
    """

    def __init__(self, folder: Path | None, cassette: Path) -> None:
        self._folder = folder
        self._name = re.sub(r"[^\w.-]", "_", cassette.stem)[:100]
        self._noted: dict[Path, tuple[object, object]] = {}

    def note(self, number: int, recorded: object, sent: object) -> Path | None:
        """Return the file that will hold a difference to a recording, both scrubbed, if any."""
        if self._folder is None:
            return None
        # Because tests that share a cassette differ from the same recording in ways of their own.
        digest = text_hash(ascii((recorded, sent)))[-8:]
        file = self._folder / f"{self._name}-{number}-{digest}.txt"
        self._noted[file] = (recorded, sent)
        return file

    def write(self) -> None:
        """Write what was noted; a file that cannot be written is skipped."""
        from difflib import unified_diff

        noted, self._noted = self._noted, {}
        for file, values in noted.items():
            old, new = (_json_text(value, indent=2).splitlines() for value in values)
            diff = unified_diff(old, new, "recorded", "sent", lineterm="", n=10_000)
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(scrub_text("\n".join([*diff, ""])), "utf-8")


_SERVICES = {"/messages": "anthropic", "/chat/completions": "openai", "/api/chat": "ollama"}
"""How providers are named, by how paths of APIs end."""


def _service_of(uri: str) -> str:
    path = urlsplit(uri).path
    return next((name for end, name in _SERVICES.items() if path.endswith(end)), "")


# Recordings that are compared with a missed request: few, because the message must come at once.
_CANDIDATES = 25

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
        query = parse_qsl(scrubbing.scrub_query(parts.query), keep_blank_values=True)
        line = {
            "method": self.method.upper(),
            "scheme": parts.scheme,
            "host": parts.netloc.rpartition("@")[2],
            "path": scrubbing.scrub_path(self.path),
            "query": by_name(sorted(query)),
        }
        members: dict[str, Any] = {name: line[name] for name in line if name in compared}
        if self.body and "body" in compared:
            value = self.json
            if value is not None or not isinstance(self.body, bytes):
                return {**members, "$": value}
            text = scrubbing.scrub_lines(self.body.decode("utf-8", "replace"))
            fields = form_fields(text.encode())
            members |= {"$": text} if fields is None else {"form": fields}
        return members

    @property
    def keys(self) -> Iterator[str]:
        """What a recording must have one of to be its answer."""
        return keys_of(self.method, self.uri, self.body)

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
        return f"{self.method.upper()} {server}{scrubbing.scrub_path(self.path)}"

    def likeness(self, recorded: Interaction) -> tuple[bool, bool, bool]:
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
        place, sent = scrub_text(f"{self.method.upper()} {self.path}"), self.json
        if not isinstance(sent, Mapping) or not isinstance(sent.get("messages"), list):
            return place
        # What identifies a turn for people: its model, number and last words.
        turn = sum(isinstance(m, Mapping) and m.get("role") == "user" for m in sent["messages"])
        # Scrub before cutting: half a credential cannot be recognized.
        words = scrub_text(" ".join(_last_words(sent).split()))
        excerpt = words if len(words) <= _EXCERPT else words[:_EXCERPT] + _CUT
        return f"{place} (model {scrub_text(str(sent.get('model')))}, turn {turn}: {excerpt!r})"


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
    diff_file: Path | None = None

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line > 1 else ""
        lines = [f"{self.request} was given interaction {self.interaction}{line}", *self.lines]
        return "\n".join(lines)

    @property
    def lines(self) -> list[str]:
        """The first differences, one in each line."""
        lines = [f"    {difference}" for difference in self.differences[:_DIFFERENCES]]
        if len(self.differences) > _DIFFERENCES:
            lines.append(f"    and {len(self.differences) - _DIFFERENCES} more")
        if self.diff_file is not None:
            lines.append(f"    in full: {display_path(self.diff_file)}")
        return lines

    @property
    def causes(self) -> tuple[str, ...]:
        """What other drifts may share: ``$.messages[*].content differs``."""
        return tuple(dict.fromkeys(difference.cause for difference in self.differences))[:_CAUSES]

    def next(self, command: str, setting: str = IGNORING) -> str:
        """Return what to do, in lines: record with ``command``, ignore what is drawn, or both."""
        drawn = [d for d in self.differences if d.is_drawn and d.path.startswith("$")]
        places = list(dict.fromkeys(difference.place for difference in drawn))[:_DIFFERENCES]
        # Where only such values differ, a new recording would hold another one again.
        lines = [] if drawn and len(drawn) == len(self.differences) else [command]
        if places:
            lines.append(setting.format(", ".join(map(json.dumps, places))))
        return "\n        ".join(lines)


def drift_between(
    request: MissedRequest, number: int, recorded: bytes, files: DiffFiles
) -> Drift | None:
    """Return how the body of a request differs from a recorded one; ``None`` if it does not."""
    if request.body == recorded:  # nearly always, and cheaper to see than to parse both
        return None
    other, compared = replace(request, body=recorded), frozenset({"body"})
    old, new = other.members(compared), request.members(compared)
    if all(isinstance(body.get("$", ""), str) and "form" not in body for body in (old, new)):
        return None  # text, which may be anything
    drift = drift_of(request, other, (number, 0), files, compared)
    return drift if drift.differences else None


def as_asked(stored: StoredInteraction, matching: Matching) -> MissedRequest:
    """Return a recorded request as it would be looked up."""
    recorded = stored.interaction
    body = matching.normalize_body(recorded.request_body)
    return MissedRequest(recorded.method, matching.scrub_text(recorded.uri), body)


@limited_depth()
def drift_of(
    request: MissedRequest,
    other: MissedRequest,
    at: tuple[int, int],
    files: DiffFiles,
    compared: Collection[str] = COMPARED,
) -> Drift:
    """Return how a request differs from the recorded one with the number and line ``at``."""
    # Scrub before cutting: half a credential cannot be recognized.
    recorded = scrubbing.scrub_value(other.members(compared))
    sent = scrubbing.scrub_value(request.members(compared))
    every = tuple(differences(recorded, sent, ""))
    texts = [text for difference in every for text in (difference.recorded, difference.sent)]
    is_cut = any(text.startswith(_CUT) or text.endswith(_CUT) for text in texts)
    is_long = len(every) > _DIFFERENCES or is_cut
    file = files.note(at[0], recorded, sent) if is_long else None
    return Drift(str(request), *at, every, file)


class Player:
    """Finds the recordings of one cassette by request.

    Args:
        path: the cassette.
        file: its content; ``None`` if there is no file.
        matching: what counts as the same request.
        command: what the message of a miss says to run.
        left: recordings of a run that was killed, beside those of the file.
    """

    def __init__(
        self,
        path: Path,
        file: CassetteFile | None,
        matching: Matching,
        command: str = "",
        left: tuple[StoredInteraction, ...] = (),
    ) -> None:
        self.path = path
        self.exists = file is not None
        self.is_left = False
        """Whether what an earlier run recorded stands beside the file. Set by whoever replays: a
        miss is made inside an event loop, too, which must not wait for a file."""
        self.matching = matching
        self.files = DiffFiles(matching.diff_folder, path)
        self.index = RecordingIndex(
            (*(file.interactions if file else ()), *left),
            attrgetter("key") if matching.is_plain else matching.key_of,
        )
        self.command = command
        self.drifts: list[Drift] = []
        """The requests that were answered by the recording of another one (``drift="warn"``)."""

    def find(self, request: MissedRequest, *, in_place: bool) -> StoredInteraction | None:
        """Return the next recording for a request and mark it played, or ``None``.

        Args:
            request: what was sent.
            in_place: whether the recording in its place may answer instead, if the policy allows.

        Raises:
            CassetteUnreadableError: a recording was edited.
        """
        policy = self.matching.drift
        if policy != "ignore":
            stored = next(filter(None, map(self.index.take, request.keys)), None)
            if stored is not None or policy == "fail" or not in_place:
                return stored
        taken = self.index.take_in_order(lambda recorded: all(request.likeness(recorded)[:2]))
        if taken is None:
            return None
        number, stored = taken
        if policy == "warn":
            other, at = as_asked(stored, self.matching), (number, stored.line)
            self.drifts.append(drift_of(request, other, at, self.files))
        return stored

    def miss(
        self, request: MissedRequest, compared: Collection[str] = COMPARED
    ) -> CassetteMissError:
        """Return the error for a request that has no recording; no file is touched meanwhile.

        Args:
            request: what was sent.
            compared: what of requests is compared, as vcrpy names it.
        """
        index, file = self.index, display_path(self.path)
        mode = "new_episodes" if self.exists else "once"
        command = f'record it with mode="{mode}", or in pytest with --regen-record {mode}'
        hint = self.command or command
        place, keys = self._place, set(request.keys)
        what = f"{self.path.name} has no answer to {request}"
        if not self.exists:
            what = f"no cassette at {file}: {request} is not recorded yet"
            why = "replay sends nothing over the network"
            if self.is_left:
                left = display_path(partial_path(self.path))
                why += f"; {left} was left by a run in which the test did not pass, or was skipped"
            causes: tuple[str, ...] = ("no cassette",)
        elif any(map(index.knows, keys)) and keys.isdisjoint(s.key for _, s in index.unplayed):
            why = f"its recording has been played already; each answers once ({place})"
            causes = ("a request is made more often than it was recorded",)
        elif (nearest := self._nearest(request, compared)) is None:
            asked = (as_asked(stored, self.matching).place for _, stored in index.numbered)
            places = list(dict.fromkeys(asked))
            listed = ", ".join(places[:_DIFFERENCES]) + (", ..." if places[_DIFFERENCES:] else "")
            why = f"nothing is recorded for {request.place}; the cassette has {listed} ({place})"
            where = host = request.host
            if host:
                why += (
                    f'\n        if {host} does not matter to the test: passthrough_hosts=["{host}"]'
                )
            causes = (f"nothing is recorded for {request.method.upper()} {where or request.path}",)
        else:
            why, hint, causes = self._difference(request, nearest, compared, hint)
        error = CassetteMissError(what, why=scrub_text(why), hint=hint, causes=causes)
        error.recorded_with = self._other_provider(request)
        return error

    @limited_depth()
    def _nearest(
        self, request: MissedRequest, compared: Collection[str]
    ) -> tuple[int, StoredInteraction] | None:
        """Return the recording nearest to the request; the first of several equally near."""
        sent = request.members(_members_of(compared))

        def apart(pair: tuple[int, StoredInteraction]) -> tuple[int, float]:
            likeness = -sum(request.likeness(pair[1].interaction))
            recorded = as_asked(pair[1], self.matching).members(_members_of(compared))
            return likeness, distance(recorded, sent)

        # Played ones last, because the next in order is most likely meant.
        for pairs in (self.index.unplayed, self.index.numbered):
            like = (pair for pair in pairs if sum(request.likeness(pair[1].interaction)) > 1)
            nearest = min(islice(like, _CANDIDATES), key=apart, default=None)
            if nearest is not None:
                return nearest
        return None

    def _difference(
        self,
        request: MissedRequest,
        nearest: tuple[int, StoredInteraction],
        match_on: Collection[str],
        hint: str,
    ) -> tuple[str, str, tuple[str, ...]]:
        """Return how a request differs from a recording, what to do, and the causes."""
        number, stored = nearest
        compared, other = _members_of(match_on), as_asked(stored, self.matching)
        drift = drift_of(request, other, (number, stored.line), self.files, compared)
        setting = IGNORING if self.command else "ignore=[{}], if that differs in each run"
        hint = drift.next(hint, setting)
        unseen = ", ".join(sorted(compared - COMPARED - _NO_BODY | compared & {"headers"}))
        hidden = f"match_on compares {unseen}" if unseen else "a credential or binary data differs"
        # In a file of JSON nobody knows the line.
        line = f" at {self.path.name}:{stored.line}" if stored.line > 1 else ""
        lines = drift.lines or [f"    {hidden}"]
        head = f"nearest is interaction {number}{line} ({self._place})"
        return "\n".join([head, *lines]), hint, drift.causes or (hidden,)

    @property
    def _place(self) -> str:
        file, index = display_path(self.path), self.index
        return f"{file}: {len(index)} recorded, {index.played} played"

    def _other_provider(self, request: MissedRequest) -> str:
        """Return which other provider was asked the same; empty where none was."""
        words = _last_words(request.json)
        for _, stored in islice(self.index.unplayed, _CANDIDATES if words else 0):
            recorded = json_or_none(self.matching.normalize_body(stored.interaction.request_body))
            service = _service_of(stored.interaction.uri)
            if service and _last_words(recorded) == words:
                asked = (service, recorded.get("model"))
                if asked != (_service_of(request.uri), request.json.get("model")):
                    return scrub_text(f"{service}:{recorded.get('model')}")
        return ""


def _members_of(match_on: Collection[str]) -> set[str]:
    """Return what of requests is compared; ``uri`` names its parts, a suite's own matcher all."""
    members = {*match_on} | (_ADDRESS if "uri" in match_on else set())
    return members | ({"body"} if members - _NO_BODY else set())


def _last_words(body: object) -> str:
    messages = body.get("messages") if isinstance(body, Mapping) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, Mapping) else None
    if isinstance(content, list):
        return " ".join(str(b.get("text") or "") for b in content if isinstance(b, Mapping))
    return str(content or "")
