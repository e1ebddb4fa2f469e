"""Cassettes read: ours through an index of keys, foreign ones whole; nothing is ever constructed.

A file that is cut, empty, binary, or asks for Python objects is refused by name and line.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from pytest_regen.cassettes.appending import Stamp, read_whole
from pytest_regen.cassettes.decoding import UndecodableBodyError, decoded_body
from pytest_regen.cassettes.format import FIRST_LINE, INTERACTIONS, interaction_text
from pytest_regen.cassettes.values import Interaction, StreamEnd, stored_key
from pytest_regen.errors import CassetteUnreadableError

__all__ = ["CassetteFile", "StoredInteraction", "read_cassette", "unreadable"]

_CHUNK = re.compile(r"^- key: (sha256:[0-9a-f]{64})\n", re.MULTILINE)
_CHUNK_END = re.compile(r"\n    status:\n      code: \d+\n      message: [^\n]*\n\Z")
_PYTHON_TAG = re.compile(r"!!python/[^\s]*|tag:yaml\.org,2002:python/[^\s>]*")


@dataclass(frozen=True)
class StoredInteraction:
    """One recording of a file, parsed when it is first needed.

    Not slotted: ``interaction`` is computed once and kept.
    """

    path: Path
    line: int
    """Line of the file it starts at, counted from 1."""
    key: str
    text: str = field(repr=False)
    """Its YAML as it stands in the file, or as this package would write it."""

    @cached_property
    def interaction(self) -> Interaction:
        """The recording.

        Raises:
            CassetteUnreadableError: the text is broken, or was edited so that its key is wrong.
        """
        [data] = _parsed_list(self.text, self.path, self.line)
        found = _interaction(data, self.path, self.line)
        if not self._is_keyed_as(found):
            raise unreadable(
                self.path,
                "the recorded request was edited: it no longer matches its key",
                line=self.line,
                hint="delete the line 'key: ...' together with the first line of the file, and "
                "the file is read afresh; or record it again with --regen-record rewrite",
            )
        return found

    def _is_keyed_as(self, found: Interaction) -> bool:
        """Whether the key is true; one of a file that was scrubbed less takes longer to tell."""
        quick = stored_key(found.method, found.uri, found.request_body)
        if quick == self.key:
            return True
        return found.key == self.key


@dataclass(frozen=True, slots=True)
class CassetteFile:
    """A cassette as it is on disk."""

    path: Path
    metadata: Mapping[str, Any]
    interactions: tuple[StoredInteraction, ...]
    stamp: Stamp | None = None
    """Whether the file is still the one that was read."""
    is_laid_out: bool = False
    """Whether it stands as this package writes it, so that recordings can be put behind it."""


def read_cassette(path: Path) -> CassetteFile | None:
    """Return the cassette at ``path``, or ``None`` where there is no file.

    Raises:
        CassetteUnreadableError: there is a file, but it is no cassette or must not be loaded.
    """
    text, stamp = _text(path)
    if text is None:
        return None
    if not text.strip():
        raise unreadable(path, "the file is empty", line=1)
    if text.startswith(FIRST_LINE) and "python/" not in text:
        indexed = _indexed(path, text)
        if indexed is not None:
            return replace(indexed, stamp=stamp)
        if not text.endswith("\n"):
            raise unreadable(path, "the file is cut: its last line does not end", line=_line(text))
    return replace(_whole(path, text), stamp=stamp)


def _text(path: Path) -> tuple[str | None, Stamp | None]:
    try:
        data, stamp = read_whole(path)
        return data.decode("utf-8-sig").replace("\r\n", "\n"), stamp
    except FileNotFoundError:
        return None, None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise unreadable(path, "the file is binary, not UTF-8 text", line=line) from error
    except OSError as error:
        raise unreadable(path, str(error.strerror or error)) from error


def _indexed(path: Path, text: str) -> CassetteFile | None:
    """Return the file through its keys alone; ``None`` where it is cut, or laid out otherwise."""
    start = text.find("\n" + INTERACTIONS)
    if start < 0:
        return None
    first = start + 1 + len(INTERACTIONS)
    heads = list(_CHUNK.finditer(text, first))
    if (heads[0].start() if heads else len(text)) != first:
        return None
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = []
    line = text.count("\n", 0, first) + 1
    for head, end in zip(heads, ends, strict=True):
        chunk = text[head.start() : end]
        if not _CHUNK_END.search(chunk, max(0, len(chunk) - 400)):
            return None
        found.append(StoredInteraction(path, line, head[1], chunk))
        line += chunk.count("\n")
    head_data = _parsed(text[: start + 1], path, 1)
    return CassetteFile(path, _metadata(head_data), tuple(found), is_laid_out=True)


def _line(text: str) -> int:
    return text.count("\n") + 1


def _whole(path: Path, text: str) -> CassetteFile:
    data = _json(text) if text.lstrip().startswith("{") else _parsed(text, path, 1)
    if not isinstance(data, Mapping) or not isinstance(data.get("interactions"), list):
        raise unreadable(
            path,
            "the file is no cassette: it has no list of interactions",
            line=1 if isinstance(data, Mapping) else _line(text),
        )
    lines = _interaction_lines(text)
    found = []
    for number, item in enumerate(data["interactions"]):
        line = lines[number] if number < len(lines) else 1
        interaction = _interaction(item, path, line)
        stored = StoredInteraction(path, line, interaction.key, interaction_text(interaction))
        # Parsed already: what was read stands in for what its text would say.
        stored.__dict__["interaction"] = interaction
        found.append(stored)
    return CassetteFile(path, _metadata(data), tuple(found))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _interaction_lines(text: str) -> list[int]:
    """Return the lines that list items at the outermost level start at."""
    return [n for n, line in enumerate(text.split("\n"), 1) if line.startswith("- ")]


def _metadata(data: object) -> Mapping[str, Any]:
    found = data.get("metadata") if isinstance(data, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _parsed_list(text: str, path: Path, line: int) -> list[Any]:
    data = _parsed(text, path, line)
    if not isinstance(data, list) or len(data) != 1:
        raise unreadable(path, "this is not one interaction", line=line)
    return data


def _parsed(text: str, path: Path, line: int) -> object:
    """Parse YAML that may only be made of plain values."""
    import yaml  # noqa: PLC0415 - 20 ms that a suite without cassettes need not spend

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 - both loaders are the safe ones
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = line + (mark.line if mark else 0)
        tag = _PYTHON_TAG.search(str(error.problem))
        if tag:
            raise unreadable(
                path,
                f"the file asks for a Python object ({tag[0].rstrip(chr(39))})",
                line=at,
                hint="do not load it: a cassette never needs that tag, and loading it could run "
                "code; delete the file and record it again",
            ) from None
        raise unreadable(path, f"the YAML is broken: {error.problem}", line=at) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise unreadable(path, f"the YAML is broken: {error}", line=line) from error


def _interaction(data: object, path: Path, line: int) -> Interaction:
    try:
        return _built(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        missing = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise unreadable(path, f"this interaction is incomplete: {missing}", line=line) from error
    except UndecodableBodyError as error:
        raise unreadable(path, str(error), line=line) from error


def _built(data: Any) -> Interaction:  # noqa: ANN401 - parsed YAML
    request, response = data["request"], data["response"]
    headers = _headers(response.get("headers"))
    body = _body(response)
    content, headers = decoded_body(body, headers)
    return Interaction(
        method=str(request["method"]),
        uri=str(request["uri"]),
        request_body=_body(request),
        status=int(response["status"]["code"]),
        # Required even where it is empty: it is the last line of an interaction.
        reason=str(response["status"]["message"] or ""),
        response_body=content,
        request_headers=_headers(request.get("headers")),
        response_headers=headers,
        **_stream(data),
    )


def _stream(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a stream arrived, where that was kept."""
    kept = data.get("stream")
    if not isinstance(kept, Mapping):
        return {}
    if kept.get("end") not in get_args(StreamEnd):
        raise ValueError(f"a stream cannot end {kept.get('end')!r}")
    chunks = kept.get("chunks") or ()
    return {"end": kept["end"], "chunks": tuple((int(ms), int(size)) for ms, size in chunks)}


def _body(part: Mapping[str, Any]) -> bytes:
    """Return a body as vcrpy stores it, or as the JSON some projects' serializers put there."""
    if "parsed_body" in part:
        return json.dumps(part["parsed_body"], ensure_ascii=False, default=str).encode()
    body = part.get("body")
    if isinstance(body, Mapping):
        body = body.get("string", body.get("base64_string"))
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json.dumps(body, ensure_ascii=False, default=str).encode()


def _headers(headers: object) -> dict[str, tuple[str, ...]]:
    return dict(_header_pairs(headers)) if isinstance(headers, Mapping) else {}


def _header_pairs(headers: Mapping[Any, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, values in headers.items():
        listed: Iterable[object] = values if isinstance(values, list | tuple) else [values]
        yield str(name).lower(), tuple(str(value) for value in listed)


def unreadable(
    path: Path, why: str, *, line: int | None = None, hint: str = ""
) -> CassetteUnreadableError:
    """Return the error for a file that is no cassette, or must not be loaded."""
    place = f"{path}:{line}" if line else str(path)
    return CassetteUnreadableError(
        f"{place}: the cassette cannot be read",
        why=why,
        hint=hint or "restore the file from version control, or delete it and record it again",
    )
