"""From the bytes of a JSON or YAML file to plain values, bounded in depth and in size."""

import difflib
import json
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml

from pytest_regen.documents.places import Defect, DefectLog, JsonNode, Pointer, pointer_segments
from pytest_regen.errors import DocumentUnreadableError

MAX_DEPTH: Final = 200
"""Levels of nesting a file may have; hand-written descriptions stay below 40."""
MAX_ALIASED_VALUES: Final = 1_000_000
"""Values that aliases of a YAML file may stand for, counted as if each were written out."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_RESAVE: Final = "save the file as UTF-8 and run the command again"
_NO_DOCUMENT: Final = "give the path of an OpenAPI 3.0, 3.1 or Swagger 2.0 document, JSON or YAML"


def load_file(path: Path, *, name: str = "") -> tuple[Any, tuple[Defect, ...]]:
    """Return the value of a JSON or YAML file, and the keys that stand twice in one mapping.

    Mappings of the value have text keys, and nothing but JSON's types is in it.

    Args:
        path: the file.
        name: what defects call it; empty for the document itself.

    Raises:
        DocumentUnreadableError: it is missing, empty, no UTF-8, neither JSON nor YAML, nested too
            deeply, or its aliases stand for too much.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        hint = _RESAVE if isinstance(error, UnicodeDecodeError) else _NO_DOCUMENT
        reason = getattr(error, "strerror", None) or error
        raise DocumentUnreadableError(f"cannot read {str(path)!r}: {reason}", hint=hint) from error
    # An empty file would be the value null, and "no mapping" says less than what is the matter.
    if not text.strip():
        raise DocumentUnreadableError(f"{str(path)!r} is empty", hint=_NO_DOCUMENT)
    log, place = DefectLog(), Pointer(name)
    what, hint = f"{str(path)!r} is neither JSON nor YAML", "correct the file at that line"
    try:
        if path.suffix.lower() == ".json" or text.lstrip()[:1] == "{":
            what = f"{str(path)!r} is not JSON"
            # JSON in YAML files is read as JSON, because that is tens of times faster.
            value = _from_json(text, place, log)
        else:
            value = _Yaml(text, place, log).document()
        return value, log.in_order()
    except RecursionError:
        what = f"{str(path)!r} cannot be read"
        why = f"it is nested too deeply: at most {MAX_DEPTH} levels are read"
        hint = "move inner schemas to components/schemas and refer to them with $ref"
    except json.JSONDecodeError as error:
        why = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        why = f"line {mark.line + 1}, column {mark.column + 1}: {why}" if mark else why
    except ValueError as error:  # An integer of thousands of digits, or half a surrogate pair.
        why = str(error)
    raise DocumentUnreadableError(what, why=why, hint=hint)


def _from_json(text: str, place: Pointer, log: DefectLog) -> Any:
    doubled: dict[int, tuple[dict[str, Any], list[str]]] = {}

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [key for key, _ in pairs]
            # The value stands beside its names, because an id is its own only while it lives.
            doubled[id(value)] = value, [name for name in value if names.count(name) > 1]
        return value

    def locate(value: Any, place: Pointer) -> None:
        for name in doubled.get(id(value), (None, ()))[1]:
            _note_duplicate(place / name, log)
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in inside:
            if isinstance(inner, dict | list):
                locate(inner, place / key)

    value = json.loads(text, object_pairs_hook=mapping)
    if "\\ud" in text or "\\uD" in text:
        # No file in UTF-8 can hold half a pair, neither ours nor those that read them.
        json.dumps(value, ensure_ascii=False).encode()
    if doubled:
        locate(value, place)
    return value


def _note_duplicate(place: Pointer, log: DefectLog) -> None:
    log.error(place, f"the key {place.path[-1]!r} stands twice in one mapping; the last one counts")


class _Yaml:
    """Builds the value of a YAML file from its events, by the rules of YAML 1.2.

    Not PyYAML's own constructor: it refuses an anchor given twice, reads ``no`` as false and
    dates as objects, and does not tell where a key is doubled. Merge keys are kept from YAML 1.1.
    """

    def __init__(self, text: str, place: Pointer, log: DefectLog) -> None:
        self._events = yaml.parse(text, Loader=_LOADER)
        self._place = place
        self._log = log
        self._path: list[str] = []
        self._anchors: dict[str | None, tuple[Any, int]] = {}
        self._weight = 0
        """Values read so far, aliases written out."""
        self._aliased = 0

    def document(self) -> Any:
        """Return the value of the only document."""
        values: list[Any] = []
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent) and values:
                raise _refuse(event, "a second YAML document starts here")
            if isinstance(event, yaml.NodeEvent):
                values.append(self._value(event))
        return values[0] if values else None

    def _value(self, event: yaml.Event) -> Any:
        """Return the value that begins with ``event``."""
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                why = "stands before this alias, or it stands inside its own anchor"
                raise _refuse(event, f"no anchor &{event.anchor} {why}")
            value, weight = self._anchors[event.anchor]
            self._weight += weight
            self._aliased += weight
            # Ten lines of ten aliases may stand for more than any memory holds.
            if self._aliased > MAX_ALIASED_VALUES:
                raise _refuse(event, f"aliases stand for more than {MAX_ALIASED_VALUES:,} values")
            return value
        before = self._weight
        self._weight += 1
        anchor = getattr(event, "anchor", None)
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        else:
            if len(self._path) >= MAX_DEPTH:
                raise RecursionError
            if isinstance(event, yaml.MappingStartEvent):
                value = self.mapping()
            else:
                value = []
                while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
                    self._path.append(str(len(value)))
                    value.append(self._value(inner))
                    self._path.pop()
        if anchor:
            self._anchors[anchor] = (value, self._weight - before)
        return value

    def mapping(self) -> dict[str, Any]:
        """Return the mapping whose start was met."""
        value: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _refuse(event, "a mapping, a list or an alias cannot be a key")
            # As it is written, because a status and a country code are text: 200, no.
            key = event.value
            self._path.append(key)
            inner = self._value(next(self._events))
            if key == "<<" and _is_plain(event):
                for source in inner if isinstance(inner, list) else [inner]:
                    merged = {**source, **merged} if isinstance(source, dict) else merged
            else:
                if key in value:
                    _note_duplicate(Pointer(self._place.file, tuple(self._path)), self._log)
                value[key] = inner
            self._path.pop()
        return {**merged, **value}


def _refuse(event: yaml.Event, why: str) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # PyYAML's parser in C has marks of its own class.
    return yaml.MarkedYAMLError(problem=why, problem_mark=mark)


def _is_plain(event: yaml.ScalarEvent) -> bool:
    return not event.style and bool(event.implicit[0])


def _scalar(event: yaml.ScalarEvent) -> Any:
    """Return the value of a scalar by the core schema of YAML 1.2; dates stay text."""
    text = event.value
    if not _is_plain(event):
        return text
    # The words are those of YAML 1.2, because "no" is a country and 12:30 a time.
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    return float(text) if _FLOAT.fullmatch(text) else text


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """A reference that leads nowhere, and why."""

    reason: str


class References:
    """The files of one document, read when a reference first leads to them."""

    def __init__(self, main: Path, value: Any, defects: Iterable[Defect]) -> None:
        self._main = main.name
        self._folder = main.parent
        self._values: dict[str, Any] = {"": value}
        self.root = JsonNode(value, Pointer())
        self.log = DefectLog()
        """Defects of the files read so far."""
        self.log.extend(defects)

    def follow(self, node: JsonNode) -> JsonNode | BrokenReference:
        """Return what ``node`` refers to in the end; ``node`` itself if it is no reference."""
        seen = set()
        while isinstance(node.value, dict) and "$ref" in node.value:
            # A chain of references may end in itself, and would be followed for ever.
            if node.place in seen:
                return BrokenReference(f"$ref {node.value['$ref']!r} leads back to itself")
            seen.add(node.place)
            target = self.target(node)
            if isinstance(target, BrokenReference):
                return target
            node = target
        return node

    def target(self, node: JsonNode) -> JsonNode | BrokenReference:
        """Return the value that the ``$ref`` of ``node`` points at, one step."""
        reference = node.value["$ref"]
        if not isinstance(reference, str):
            return BrokenReference(f"$ref must be a string, not {type(reference).__name__}")
        written, _, fragment = reference.partition("#")
        try:
            file = self._file_of(written, node.place.file)
            if file not in self._values:
                self._values[file], defects = load_file(self._folder / file, name=file)
                self.log.extend(defects)
            value = self._values[file]
        except DocumentUnreadableError as error:
            why = f"{error.what} ({error.why})" if error.why else error.what
            return BrokenReference(f"$ref {reference!r}: {why}")
        except ValueError as error:
            return BrokenReference(f"$ref {reference!r} {error}")
        # Anchors ($anchor) are names, for which the whole file would have to be searched.
        if fragment and not fragment.startswith("/"):
            return BrokenReference(f"$ref {reference!r}: only JSON pointers (#/…) are followed")
        segments = pointer_segments(unquote(fragment))
        for part in segments:
            if isinstance(value, dict) and part in value:
                value = value[part]
            # Bundled documents refer into lists: #/paths/~1a/get/parameters/0/schema.
            elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            else:
                names = difflib.get_close_matches(part, value, n=3) if type(value) is dict else ()
                near = f"; near names: {', '.join(names)}" if names else ""
                return BrokenReference(f"$ref {reference!r} points at nothing{near}")
        return JsonNode(value, Pointer(file, segments))

    def _file_of(self, written: str, base: str) -> str:
        """Return the name of the file that is called ``written`` in the file ``base``.

        Raises:
            ValueError: it is none of the document's.
        """
        if not written:
            return base
        name = unquote(written)
        # Percent signs are undone first, because %2e%2e leads out of the folder as well.
        file = posixpath.normpath(posixpath.join(posixpath.dirname(base), name))
        is_elsewhere = any(urlsplit(written)[:2]) or "\0" in name or name[:1] in {"/", "\\"}
        # A link may lead out of the folder, because a name alone does not tell.
        if is_elsewhere or not (self._folder / file).resolve().is_relative_to(
            self._folder.resolve()
        ):
            raise ValueError(
                "leads out of the document's folder; only files beside or below the document "
                "are read"
            )
        return "" if file == self._main else file
