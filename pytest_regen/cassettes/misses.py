"""The message for a request without a recording: what it is, what is nearest, where they differ."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.cassettes.files.reader import StoredInteraction
from pytest_regen.cassettes.files.storage import display_path, partial_path
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.json_bodies import at_any_index, member_path
from pytest_regen.cassettes.matching import Matching, RecordingIndex
from pytest_regen.cassettes.scrubbing import scrub_value
from pytest_regen.credentials.search import scrub_text
from pytest_regen.errors import CassetteError, CassetteMissError
from pytest_regen.network import host_of
from pytest_regen.strict_json import json_or_none

_SHOWN = 60
"""How many characters of a value are shown."""

_ABSENT = "(absent)"

_BEFORE = 30
"""How many characters are shown before the place where two texts differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the request is not what was recorded."""

    path: str
    """As JSONPath: ``$.messages[2].content``."""
    recorded: str
    """The recorded value, shortened; ``(absent)`` if there is no value."""
    sent: str

    def __str__(self) -> str:
        return f"{self.path}: recorded {self.recorded}, sent {self.sent}"

    @property
    def cause(self) -> str:
        """The difference in words that other requests share: ``$.messages[*].content differs``.

        Values and list positions are left out.
        """
        path = at_any_index(self.path)
        if _ABSENT not in (self.recorded, self.sent):
            return f"{path} differs"
        return f"{path} is {'new' if self.recorded == _ABSENT else 'gone'}"

    @property
    def is_cut(self) -> bool:
        """Whether one of the values is shown shortened."""
        return any(
            text.startswith("...") or text.endswith("...") for text in (self.recorded, self.sent)
        )


def differences(recorded: Any, sent: Any, path: str = "$") -> Iterator[Difference]:
    """Yield the places where ``sent`` differs from ``recorded``, outermost first."""
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        for name in [*recorded, *(n for n in sent if n not in recorded)]:
            yield from _members(recorded, sent, name, member_path(path, name))
    elif isinstance(recorded, list) and isinstance(sent, list):
        for number in range(max(len(recorded), len(sent))):
            step = f"{path}[{number}]"
            old, new = recorded[number : number + 1], sent[number : number + 1]
            yield from _members(dict(enumerate(old)), dict(enumerate(new)), 0, step)
    elif recorded != sent or type(recorded) is not type(sent):
        old_text, new_text = _excerpts(recorded, sent)
        yield Difference(path, old_text, new_text)


def _members(
    recorded: Mapping[Any, Any],
    sent: Mapping[Any, Any],
    name: Any,
    path: str,
) -> Iterator[Difference]:
    if name not in sent:
        yield Difference(path, _short(_json_text(recorded[name])), _ABSENT)
    elif name not in recorded:
        yield Difference(path, _ABSENT, _short(_json_text(sent[name])))
    else:
        yield from differences(recorded[name], sent[name], path)


def _excerpts(recorded: object, sent: object) -> tuple[str, str]:
    """Return both values; long texts are cut around the place where they differ."""
    if not isinstance(recorded, str) or not isinstance(sent, str):
        return _short(_json_text(recorded)), _short(_json_text(sent))
    pairs = zip(recorded, sent, strict=False)
    parting = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(recorded), len(sent)))
    start = max(0, parting - _BEFORE)
    return _cut(recorded, start), _cut(sent, start)


def _cut(text: str, start: int) -> str:
    shown = text[start : start + _SHOWN]
    before = "..." if start else ""
    after = "..." if start + _SHOWN < len(text) else ""
    return f"{before}{_json_text(shown)}{after}"


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
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        names = {*recorded, *sent}
        return _mean([_member_distance(recorded, sent, name) for name in names])
    if isinstance(recorded, list) and isinstance(sent, list):
        count = max(len(recorded), len(sent))
        old, new = dict(enumerate(recorded)), dict(enumerate(sent))
        return _mean([_member_distance(old, new, number) for number in range(count)])
    if isinstance(recorded, str) and isinstance(sent, str):
        return _text_distance(recorded, sent)
    return 0.0 if recorded == sent else 1.0


def _member_distance(recorded: Mapping[Any, Any], sent: Mapping[Any, Any], name: object) -> float:
    if name not in recorded or name not in sent:
        return 1.0
    return distance(recorded[name], sent[name])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


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
        file = self._folder / f"{name}-{number}.txt"
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


def _record_command(mode: str, asked: "MissedRequest") -> str:
    _, key = _service_of(asked.uri)
    command = f'record it with mode="{mode}", or in pytest with --regen-record {mode}'
    return f"{command}, and with {key} set" if key else command


_CANDIDATES = 25
"""How many recordings are compared with a missed request; more would take too long."""

_DIFFERENCES = 5
_CAUSES = 50
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class MissedRequest:
    """A request as it is looked up: normalized."""

    method: str
    uri: str
    body: bytes | Mapping[str, Any]

    @property
    def json(self) -> Any:
        """The body as JSON, or ``None``."""
        return json_or_none(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def value(self) -> Any:
        """The body in the form it is compared in: JSON, else text; ``None`` if it is empty."""
        return _value(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def host(self) -> str:
        """The host asked; empty for a turn of this package's providers, which have only a path."""
        return host_of(self.uri)

    @property
    def path(self) -> str:
        """The path asked for."""
        return urlsplit(self.uri).path or "/"

    def same_place(self, recorded: Interaction) -> bool:
        """Whether a recording has the same method and path."""
        return (
            recorded.method.upper() == self.method.upper()
            and (urlsplit(recorded.uri).path or "/") == self.path
        )

    def __str__(self) -> str:
        return scrub_text(f"{self.method.upper()} {self.path}") + _subject(self.json)


@dataclass(frozen=True, slots=True)
class Drift:
    """A request that was answered by the recording of another one."""

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

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        lines = [f"{self.request} was given interaction {self.interaction}{line}"]
        return "\n".join([*lines, *_difference_lines(self.differences, self.more, self.diff_file)])


def drift_of(
    path: Path,
    asked: MissedRequest,
    number: int,
    stored: StoredInteraction,
    *,
    matching: Matching,
    files: DiffFiles,
) -> Drift:
    """Return how a request differs from the recording that answered it."""
    recorded = json_or_none(matching.normalize_body(stored.interaction.request_body))
    found = _compare_request(path, recorded, asked.json, files, number)
    return found.drift(asked, number, stored.line)


def drift_between(
    path: Path, asked: MissedRequest, number: int, recorded: bytes, files: DiffFiles
) -> Drift | None:
    """Return how a request differs from a recorded body; ``None`` if it does not."""
    if asked.body == recorded:  # nearly always, and cheaper to see than to parse both
        return None
    old, new = json_or_none(recorded), asked.json
    if old is None and new is None:
        return None
    found = _compare_request(path, old, new, files, number)
    return found.drift(asked, number, 0) if found.first else None


def miss(
    path: Path,
    index: RecordingIndex,
    asked: MissedRequest,
    *,
    key: str,
    exists: bool,
    is_left: bool,
    matching: Matching,
    files: DiffFiles,
    command: str = "",
) -> CassetteMissError:
    """Return the error for a request that was never recorded; no file is touched meanwhile.

    Args:
        path: the cassette.
        index: its recordings.
        asked: the request.
        key: its key.
        exists: whether there is a cassette at all.
        is_left: whether a failed run left a partial file.
        matching: how bodies are compared.
        files: where a long difference goes.
        command: what to run so that it is recorded.
    """
    if not exists:
        why = "replay sends nothing over the network"
        if is_left:
            left = display_path(partial_path(path))
            why += f"; {left} was left by a run in which the test did not pass, or was skipped"
        return CassetteMissError(
            f"no cassette at {display_path(path)}: {asked} is not recorded yet",
            why=why,
            hint=command or _record_command("once", asked),
            host=asked.host,
            causes=["no cassette"],
        )
    try:
        why, causes = _reason(path, index, key, asked, matching=matching, files=files)
    except RecursionError:
        why, causes = "it is nested too deeply to be compared with what was recorded", ()
    error = CassetteMissError(
        f"{path.name} has no answer to {asked}",
        why=scrub_text(why),
        hint=command or _record_command("new_episodes", asked),
        host=asked.host,
        causes=causes,
    )
    error.recorded_with = _other_provider(index, asked, matching.normalize_body)
    return error


def _other_provider(
    index: RecordingIndex, asked: MissedRequest, normalized: Callable[[bytes], bytes]
) -> str:
    """Return which other provider was asked the same; empty where none was."""
    sent = asked.json
    for _, stored in islice(index.unplayed, _CANDIDATES):
        recorded = json_or_none(normalized(stored.interaction.request_body))
        service, _ = _service_of(stored.interaction.uri)
        if service and _last_words(recorded) and _last_words(recorded) == _last_words(sent):
            model = recorded.get("model")
            if (service, model) != (_service_of(asked.uri)[0], sent.get("model")):
                return scrub_text(f"{service}:{model}")
    return ""


def _last_words(body: object) -> str:
    messages = body.get("messages") if isinstance(body, Mapping) else None
    return _words(messages[-1]) if isinstance(messages, list) and messages else ""


def with_exemption(error: CassetteError, argument: str = "passthrough_hosts") -> CassetteError:
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
    why = f"{error.why}\n        {more}" if error.why else more
    return CassetteMissError(
        error.what, why=why, hint=error.hint, host=host, causes=miss_causes(error)
    )


def miss_causes(error: CassetteError) -> tuple[str, ...]:
    """Return what a miss has in common with others; nothing for any other error."""
    return error.causes if isinstance(error, CassetteMissError) else ()


def _subject(sent: object) -> str:
    """Return what identifies a request for people: its model, turn and last words."""
    if not isinstance(sent, Mapping) or not isinstance(sent.get("messages"), list):
        return ""
    messages = sent["messages"]
    turn = sum(isinstance(m, Mapping) and m.get("role") == "user" for m in messages)
    # Scrub before cutting: half a credential cannot be recognized.
    words = scrub_text(" ".join(_words(messages[-1]).split())) if messages else ""
    shown = words if len(words) <= _EXCERPT else words[:_EXCERPT] + "..."
    return f" (model {scrub_text(str(sent.get('model')))}, turn {turn}: {shown!r})"


def _words(message: object) -> str:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        texts = [str(b.get("text") or "") for b in content if isinstance(b, Mapping)]
        return " ".join(texts)
    return str(content or "")


def _reason(
    path: Path,
    index: RecordingIndex,
    key: str,
    asked: MissedRequest,
    *,
    matching: Matching,
    files: DiffFiles,
) -> tuple[str, tuple[str, ...]]:
    """Return why there is no answer, in full and in words that other misses share."""
    place = f"{display_path(path)}: {len(index)} recorded, {index.played} played"
    if index.knows(key):
        other = next((pair for pair in index.unplayed if pair[1].key == key), None)
        if other is None:
            played = "the same request was recorded and is played already, each answers once"
            return f"{played} ({place})", ("a request is made more often than it was recorded",)
        return f"{_address_difference(asked, *other)} ({place})", (
            "what match_on compares differs",
        )
    nearest = _nearest(index.unplayed or index.numbered, asked, matching.normalize_body)
    if nearest is None:
        return f"nothing in it is like this request ({place})", ("nothing recorded is like it",)
    number, stored, recorded = nearest
    found = _compare_request(path, recorded, asked.value, files, number)
    at = f" at {path.name}:{stored.line}" if stored.line else ""
    lines = _difference_lines(found.first, found.more, found.file) or [
        "    method, path or query differ"
    ]
    causes = found.causes or ("method, path or query differ",)
    return "\n".join([f"nearest is interaction {number}{at} ({place})", *lines]), causes


def _address_difference(asked: MissedRequest, number: int, stored: StoredInteraction) -> str:
    """Return why vcrpy did not play a recording whose method, path, query and body are equal."""
    recorded, sent = urlsplit(stored.interaction.uri), urlsplit(asked.uri)
    if (recorded.scheme, recorded.netloc) == (sent.scheme, sent.netloc):
        return f"interaction {number} is the same request, but what match_on compares differs"
    old, new = f"{recorded.scheme}://{recorded.netloc}", f"{sent.scheme}://{sent.netloc}"
    return (
        f"interaction {number} is the same request to another address: recorded {old}, sent {new}"
    )


def _value(body: bytes) -> object:
    """Return a body as JSON, or as text if ``strict_json`` refuses it."""
    value = json_or_none(body)
    return body.decode("utf-8", "replace") if value is None and body else value


def _difference_lines(found: Iterable[Difference], more: int, file: Path | None) -> list[str]:
    lines = [f"    {difference}" for difference in found]
    if more:
        lines.append(f"    and {more} more")
    if file is not None:
        lines.append(f"    in full: {display_path(file)}")
    return lines


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Where a request differs from a recording."""

    first: tuple[Difference, ...]
    more: int
    file: Path | None
    """The file for the full difference, if it is long."""
    causes: tuple[str, ...]

    def drift(self, asked: MissedRequest, number: int, line: int) -> Drift:
        """Return it as the drift of a request that recording ``number`` answered."""
        return Drift(str(asked), number, line, self.first, self.more, self.file, self.causes)


def _compare_request(
    path: Path, recorded: object, sent: object, files: DiffFiles, number: int
) -> _Comparison:
    try:
        # Scrub before cutting: half a credential cannot be recognized.
        recorded, sent = scrub_value(recorded), scrub_value(sent)
        every = list(differences(recorded, sent))
    except RecursionError:
        every = [Difference("$", "nested too deeply", "nested too deeply to be compared")]
    first, more = tuple(every[:_DIFFERENCES]), max(0, len(every) - _DIFFERENCES)
    is_long = more or any(difference.is_cut for difference in first)
    file = files.note(path, number, recorded, sent) if is_long else None
    causes = tuple(islice(dict.fromkeys(difference.cause for difference in every), _CAUSES))
    return _Comparison(first, more, file, causes)


def _nearest(
    candidates: Iterable[tuple[int, StoredInteraction]],
    asked: MissedRequest,
    normalized: Callable[[bytes], bytes],
) -> tuple[int, StoredInteraction, object] | None:
    """Return the recording nearest to the request; the first of several equally near."""
    best: tuple[tuple[bool, float], int, StoredInteraction, object] | None = None
    sent = asked.value
    for number, stored in islice(candidates, _CANDIDATES):
        recorded = _value(normalized(stored.interaction.request_body))
        # A different path is farther than any difference in bodies.
        apart = (not asked.same_place(stored.interaction), distance(recorded, sent))
        if best is None or apart < best[0]:
            best = (apart, number, stored, recorded)
    return best[1:] if best else None
