"""The message for a request nobody recorded: which it is, what is nearest, where they differ."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_regen.cassettes.diff_files import DiffFiles
from pytest_regen.cassettes.differences import Difference, differences, distance
from pytest_regen.cassettes.files.places import partial_path, shown_path
from pytest_regen.cassettes.files.reading import StoredInteraction
from pytest_regen.cassettes.hosts import host_of
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.scrubbing import scrub_value
from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.cassettes.tape import Tape
from pytest_regen.cassettes.values import Interaction
from pytest_regen.errors import CassetteError, CassetteMissError
from pytest_regen.turns.secrets import scrub_text

__all__ = ["Asked", "Drift", "drift_between", "drift_of", "miss", "miss_causes", "with_exemption"]

RECORD_COMMAND = (
    'record it with mode="{mode}", or in pytest with --regen-record {mode}, and with '
    "ANTHROPIC_API_KEY set"
)

_CANDIDATES = 25
"""Recordings compared with a request nobody recorded; more would take longer than the answer."""

_DIFFERENCES = 5
_CAUSES = 50
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is looked up: normalized."""

    method: str
    uri: str
    body: bytes | Mapping[str, Any]

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """The body as JSON, or ``None``."""
        return json_or_none(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def value(self) -> Any:  # noqa: ANN401 - any JSON value
        """The body as what it can be compared as: JSON, else text; ``None`` where it is empty."""
        return _value(self.body) if isinstance(self.body, bytes) else self.body

    @property
    def host(self) -> str:
        """The host asked; empty for a turn of ours, which is known by its path."""
        return host_of(self.uri)

    @property
    def path(self) -> str:
        """The path asked for."""
        return urlsplit(self.uri).path or "/"

    def same_place(self, recorded: Interaction) -> bool:
        """Whether a recording is of the same method and path."""
        return (
            recorded.method.upper() == self.method.upper()
            and (urlsplit(recorded.uri).path or "/") == self.path
        )

    def __str__(self) -> str:
        return scrub_text(f"{self.method.upper()} {self.path}") + _subject(self.json)


@dataclass(frozen=True, slots=True)
class Drift:
    """A request that was given the recording of another one."""

    request: str
    """Method, path, model, turn and last words."""
    interaction: int
    """Number of the recording in the file, from 1."""
    line: int
    differences: tuple[Difference, ...]
    """The first of them."""
    more: int
    diff_file: Path | None = None
    causes: tuple[str, ...] = ()
    """All of them, as other drifts have them, too: ``$.messages[*].content differs``."""

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        lines = [f"{self.request} was given interaction {self.interaction}{line}"]
        return "\n".join([*lines, *_shown(self.differences, self.more, self.diff_file)])


def drift_of(
    path: Path,
    asked: Asked,
    number: int,
    stored: StoredInteraction,
    *,
    matching: Matching,
    files: DiffFiles,
) -> Drift:
    """Return how a request differs from the recording that stood in its place."""
    recorded = json_or_none(matching.normalized(stored.interaction.request_body))
    found = _compared(path, recorded, asked.json, files, number)
    return found.drift(asked, number, stored.line)


def drift_between(
    path: Path, asked: Asked, number: int, recorded: bytes, files: DiffFiles
) -> Drift | None:
    """Return how a request differs from a recorded body; ``None`` if it does not."""
    if asked.body == recorded:  # nearly always, and cheaper to see than to parse both
        return None
    old, new = json_or_none(recorded), asked.json
    if old is None and new is None:
        return None
    found = _compared(path, old, new, files, number)
    return found.drift(asked, number, 0) if found.first else None


def miss(
    path: Path,
    tape: Tape,
    asked: Asked,
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
        tape: its recordings.
        asked: the request.
        key: its key.
        exists: whether there is a cassette at all.
        is_left: whether a run that did not end well left a partial file.
        matching: how bodies are compared.
        files: where a long difference goes.
        command: what to run so that it is recorded.
    """
    if not exists:
        why = "replay sends nothing over the network"
        if is_left:
            left = shown_path(partial_path(path))
            why += f"; {left} was left by a run in which the test did not pass, or was skipped"
        return CassetteMissError(
            f"no cassette at {shown_path(path)}, and {asked} needs one",
            why=why,
            hint=command or RECORD_COMMAND.format(mode="once"),
            host=asked.host,
            causes=["no cassette"],
        )
    try:
        why, causes = _why(path, tape, key, asked, matching=matching, files=files)
    except RecursionError:
        why, causes = "it is nested too deeply to be compared with what was recorded", ()
    return CassetteMissError(
        f"{path.name} has no answer to {asked}",
        why=scrub_text(why),
        hint=command or RECORD_COMMAND.format(mode="new_episodes"),
        host=asked.host,
        causes=causes,
    )


def with_exemption(error: CassetteError, argument: str = "passthrough_hosts") -> CassetteError:
    """Return the error for a miss that nobody waited for, with the words that exempt its host.

    Args:
        error: the miss.
        argument: what takes the host, with what stands before it, such as ``@pytest.mark.…(``.
    """
    host = scrub_text(error.host) if isinstance(error, CassetteMissError) else ""
    if not host:
        return error
    end = ")" if "(" in argument else ""
    line = f'{argument}=["{host}"]{end}'
    more = f"nobody waited for the answer; if {host} is no business of the test: {line}"
    why = f"{error.why}\n        {more}" if error.why else more
    return CassetteMissError(
        error.what, why=why, hint=error.hint, host=host, causes=miss_causes(error)
    )


def miss_causes(error: CassetteError) -> tuple[str, ...]:
    """Return what a miss has in common with others; nothing for another error."""
    return error.causes if isinstance(error, CassetteMissError) else ()


def _subject(sent: object) -> str:
    """Return what identifies a request for people: its model, turn and last words."""
    if not isinstance(sent, Mapping) or not isinstance(sent.get("messages"), list):
        return ""
    messages = sent["messages"]
    turn = sum(isinstance(m, Mapping) and m.get("role") == "user" for m in messages)
    # Scrubbed before it is cut: of half a credential nobody sees that it is one.
    words = scrub_text(" ".join(_words(messages[-1]).split())) if messages else ""
    shown = words if len(words) <= _EXCERPT else words[:_EXCERPT] + "..."
    return f" (model {scrub_text(str(sent.get('model')))}, turn {turn}: {shown!r})"


def _words(message: object) -> str:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        texts = [str(b.get("text") or "") for b in content if isinstance(b, Mapping)]
        return " ".join(texts)
    return str(content or "")


def _why(
    path: Path, tape: Tape, key: str, asked: Asked, *, matching: Matching, files: DiffFiles
) -> tuple[str, tuple[str, ...]]:
    """Return why there is no answer, in full and in words that other misses share."""
    place = f"{shown_path(path)}: {len(tape)} recorded, {tape.played} played"
    if tape.knows(key):
        other = next((one for one in tape.unplayed if one[1].key == key), None)
        if other is None:
            played = "the same request was recorded and is played already, each answers once"
            return f"{played} ({place})", ("a request is made more often than it was recorded",)
        return f"{_apart(asked, *other)} ({place})", ("what match_on compares differs",)
    nearest = _nearest(tape.unplayed or tape.everything, asked, matching.normalized)
    if nearest is None:
        return f"nothing in it is like this request ({place})", ("nothing recorded is like it",)
    number, stored, recorded = nearest
    found = _compared(path, recorded, asked.value, files, number)
    at = f" at {path.name}:{stored.line}" if stored.line else ""
    lines = _shown(found.first, found.more, found.file) or ["    method, path or query differ"]
    causes = found.causes or ("method, path or query differ",)
    return "\n".join([f"nearest is interaction {number}{at} ({place})", *lines]), causes


def _apart(asked: Asked, number: int, stored: StoredInteraction) -> str:
    """Return why vcrpy did not take a recording whose method, path, query and body are equal."""
    recorded, sent = urlsplit(stored.interaction.uri), urlsplit(asked.uri)
    if (recorded.scheme, recorded.netloc) == (sent.scheme, sent.netloc):
        return f"interaction {number} is the same request, but what match_on compares differs"
    old, new = f"{recorded.scheme}://{recorded.netloc}", f"{sent.scheme}://{sent.netloc}"
    return (
        f"interaction {number} is the same request to another address: recorded {old}, sent {new}"
    )


def _value(body: bytes) -> object:
    """Return a body as JSON; as text where it is none, names a key twice, or cannot be kept."""
    value = json_or_none(body)
    return body.decode("utf-8", "replace") if value is None and body else value


def _shown(found: Iterable[Difference], more: int, file: Path | None) -> list[str]:
    lines = [f"    {difference}" for difference in found]
    if more:
        lines.append(f"    and {more} more")
    if file is not None:
        lines.append(f"    in full: {shown_path(file)}")
    return lines


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Where a request differs from a recording."""

    first: tuple[Difference, ...]
    more: int
    file: Path | None
    """Where all of it is to stand, if that is long."""
    causes: tuple[str, ...]

    def drift(self, asked: Asked, number: int, line: int) -> Drift:
        """Return it as the drift of a request that recording ``number`` answered."""
        return Drift(str(asked), number, line, self.first, self.more, self.file, self.causes)


def _compared(
    path: Path, recorded: object, sent: object, files: DiffFiles, number: int
) -> _Comparison:
    try:
        # Scrubbed before anything is cut: of half a credential nobody sees that it is one.
        recorded, sent = scrub_value(recorded), scrub_value(sent)
        every = list(differences(recorded, sent))
    except RecursionError:
        every = [Difference("$", "nested too deeply", "nested too deeply to be compared")]
    first, more = tuple(every[:_DIFFERENCES]), max(0, len(every) - _DIFFERENCES)
    is_long = more or any(one.is_cut for one in first)
    file = files.note(path, number, recorded, sent) if is_long else None
    causes = tuple(islice(dict.fromkeys(one.cause for one in every), _CAUSES))
    return _Comparison(first, more, file, causes)


def _nearest(
    candidates: Iterable[tuple[int, StoredInteraction]],
    asked: Asked,
    normalized: Callable[[bytes], bytes],
) -> tuple[int, StoredInteraction, object] | None:
    """Return the recording nearest to the request; the first of several equally near."""
    best: tuple[tuple[bool, float], int, StoredInteraction, object] | None = None
    sent = asked.value
    for number, stored in islice(candidates, _CANDIDATES):
        recorded = _value(normalized(stored.interaction.request_body))
        # Another path is farther than any body.
        apart = (not asked.same_place(stored.interaction), distance(recorded, sent))
        if best is None or apart < best[0]:
            best = (apart, number, stored, recorded)
    return best[1:] if best else None
