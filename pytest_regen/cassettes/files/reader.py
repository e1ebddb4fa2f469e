"""Reading of cassettes: ours through an index of keys, foreign ones whole; no objects are built.

A file that is truncated, empty or binary, or asks for Python objects, is refused with its line.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regen.cassettes.files import bodies, parser
from pytest_regen.cassettes.files import format as layout
from pytest_regen.cassettes.files.storage import PARTIAL, is_packed, read_whole
from pytest_regen.cassettes.interactions import Interaction, keys_of

_START = b"- key: "
_STARTS = re.compile(rb"^- key: ", re.MULTILINE)
_KEY = re.compile(rb"- key: (sha256:[0-9a-f]{64})\n")
_CHUNK_END = re.compile(rb"\n    status:\n      code: \d+\n      message: [^\n]*\n\Z")
_END_WITHIN = 400
"""In bytes: where the last lines of an interaction are looked for."""
_FORMAT = re.compile(rb"# pytest-regen cassette, format (\d+)\n")


class StoredInteraction:
    """One recording of a file, parsed when it is first needed.

    Args:
        path: the cassette.
        line: line of the file it starts at, counted from 1.
        key: what a request must equal to be given its answer.
        data: its YAML in UTF-8, a view into the file's bytes, so that a large file is in memory
            once; or the recording itself, where it is parsed already.
    """

    def __init__(
        self, path: Path, line: int, key: str, data: bytes | memoryview | Interaction
    ) -> None:
        self.path = path
        self.line = line
        self._key = key
        self._data = data

    @cached_property
    def key(self) -> str:
        """What a request must equal to be given its answer."""
        return self._key or self.interaction.key

    @cached_property
    def first_key(self) -> str:
        """The key that its request is looked up by first.

        It needs no search for credentials, which takes longer in a foreign file than reading it.
        """
        if self._key:
            return self._key
        parsed = self.interaction
        return next(keys_of(parsed.method, parsed.uri, parsed.request_body))

    @property
    def text(self) -> str:
        """Its YAML: that of the file if we wrote it, else with bodies as vcrpy reads them."""
        if isinstance(self._data, Interaction):
            return layout.interaction_text(self._data, lays_out=False)
        return str(self._data, "utf-8")

    @cached_property
    def interaction(self) -> Interaction:
        """The recording.

        Raises:
            CassetteUnreadableError: the text is broken, or was edited so that its key is wrong.
        """
        if isinstance(self._data, Interaction):
            return self._data
        data, _ = parser.parse_yaml(self.text, self.path, self.line)
        if not isinstance(data, list) or len(data) != 1:
            raise parser.unreadable(self.path, "this is not one interaction", line=self.line)
        parsed = layout.build_interaction(data[0], self.path, self.line)
        if self.key not in keys_of(parsed.method, parsed.uri, parsed.request_body):
            raise parser.unreadable(
                self.path,
                "the recorded request was edited: it no longer matches its key",
                line=self.line,
                hint="delete the line 'key: ...' together with the first line of the file, and "
                "the file is read afresh; or record it again with --regen-record rewrite",
                is_edited=True,
            )
        return parsed


@dataclass(frozen=True, slots=True)
class CassetteFile:
    """A cassette as it was read from disk."""

    path: Path
    metadata: Mapping[str, Any]
    interactions: tuple[StoredInteraction, ...]
    head: str = ""
    """All before the first recording, if it has this package's layout; recordings can be added."""


def read_cassette(path: Path) -> CassetteFile | None:
    """Return the cassette at ``path``, or ``None`` if there is no file.

    Raises:
        CassetteUnreadableError: there is a file, but it is not a cassette or must not be loaded.
    """
    data = content_of(path)
    if data is None:
        return None
    if path.suffix == PARTIAL:
        # Without the recording that a killed run left unfinished, if any.
        data = data[: data.rfind(b"\n") + 1]
        last = data.rfind(b"\n" + _START) + 1
        if last and not _CHUNK_END.search(data, max(last, len(data) - _END_WITHIN)):
            data = data[:last]
    if data.startswith(layout.FIRST_LINE.encode()) and b"python/" not in data:
        indexed = _index_text(path, data)
        if indexed is not None:
            return indexed
    text = parser.text_of(path, data)
    del data  # because the parser needs several times as much
    parsed, lines = parser.parse_text(path, text)
    items = parser.interactions_with_lines(path, text, parsed, lines)
    del text
    interactions = []
    for line, item in items:
        whole = layout.build_interaction(item, path, line)
        # With the boundary that requests are compared with.
        whole = replace(whole, request_body=bodies.with_stable_boundary(whole.request_body))
        interactions.append(StoredInteraction(path, line, "", whole))
    return CassetteFile(path, _metadata(parsed), tuple(interactions))


def content_of(path: Path) -> bytes | None:
    """Return the bytes of a cassette; ``None`` if there is no file.

    Raises:
        CassetteUnreadableError: it cannot be read, or holds no text or no cassette yet.
    """
    try:
        data = read_whole(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "allow it to be read, and see that it is a file with a name of ordinary length"
        raise parser.unreadable(path, str(error.strerror or error), hint=hint) from None
    if is_packed(path):
        try:
            data = bodies.unpack_file(data)
        except bodies.UndecodableBodyError as error:
            raise parser.unreadable(path, error.why) from None
    data = parser.check_content(path, data)
    form = _FORMAT.match(data)
    if form and not data.startswith(layout.FIRST_LINE.encode()):
        why = f"it is in format {form[1].decode()}, which this version does not know"
        raise parser.unreadable(path, why, line=1, hint="pip install --upgrade pytest-regen")
    if form and path.suffix != PARTIAL and not data.endswith(b"\n"):
        line = data.count(b"\n") + 1
        raise parser.unreadable(path, "the file is cut: its last line does not end", line=line)
    return data


def _index_text(path: Path, data: bytes) -> CassetteFile | None:
    """Return the file by its keys alone; ``None`` if it is truncated or has another layout."""
    marker = b"\n" + layout.INTERACTIONS.encode()
    first = data.find(marker) + len(marker)
    if first < len(marker):
        return None
    # Everything else in our layout is indented.
    starts = [first + match.start() for match in _STARTS.finditer(memoryview(data)[first:])]
    if first == len(data):
        line = data.count(b"\n")
        raise parser.unreadable(path, "the file is cut: it holds no recording", line=line)
    if not starts or starts[0] != first:
        return None
    view, recordings = memoryview(data), []
    line = data.count(b"\n", 0, first) + 1
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        key = _KEY.match(data, start, end)
        # Read whole where one is not as we write it, because the parser can tell what is wrong.
        if not key or not _CHUNK_END.search(data, max(start, end - _END_WITHIN), end):
            return None
        # Now, because binary content is refused before anything is played.
        parser.text_of(path, view[start:end], line)
        recordings.append(StoredInteraction(path, line, key[1].decode("ascii"), view[start:end]))
        line += data.count(b"\n", start, end)
    head = parser.text_of(path, view[:first])
    metadata = _metadata(parser.parse_yaml(head, path)[0])
    return CassetteFile(path, metadata, tuple(recordings), head)


def _metadata(data: object) -> Mapping[str, Any]:
    """Return the metadata as JSON values, whatever the file holds there."""
    whole = data if isinstance(data, Mapping) else {}
    merged: dict[Any, Any] = {}
    for part in (whole.get("metadata"), whole.get(layout.RECORDING)):
        merged.update(part if isinstance(part, Mapping) else {})
    if not merged:
        return {}
    text = json.dumps(merged, ensure_ascii=False, skipkeys=True, default=str)
    # JSON may hold lone surrogates; the YAML this is written to may not.
    plain: dict[str, Any] = json.loads(text.encode("utf-8", "replace"), parse_constant=str)
    return plain
