"""From the bytes of a JSON or YAML file to plain values, bounded in depth and in size."""

import difflib
import hashlib
import json
import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import yaml

from pytest_regen.documents.places import Defect, DefectLog, JsonNode, Pointer, pointer_segments
from pytest_regen.errors import DocumentUnreadableError
from pytest_regen.extras import needs

if TYPE_CHECKING:
    from referencing import Resource


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
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_MAX_DIGITS: Final = 4000
"""Python refuses to read integers of more than 4300 digits."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_RESAVE: Final = "save the file as UTF-8 and run the command again"
_NO_DOCUMENT: Final = "give the path of an OpenAPI 3.0, 3.1 or Swagger 2.0 document, JSON or YAML"


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file's value: mappings have text keys, and nothing but JSON's types is in it."""

    value: Any
    sha256: str
    """``sha256:`` and the hex digest of the file's bytes."""
    defects: tuple[Defect, ...] = ()
    """Keys that stand twice in one mapping, and halves of characters."""


def load_file(path: Path, *, name: str = "") -> LoadedFile:
    """Return the value of a JSON or YAML file.

    Args:
        path: the file.
        name: what defects call it; empty for the document itself.

    Raises:
        DocumentUnreadableError: it is missing, empty, no UTF-8, neither JSON nor YAML, nested too
            deeply, or its aliases stand for too much.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DocumentUnreadableError(
            f"cannot read {str(path)!r}: {reason}", hint=_NO_DOCUMENT
        ) from error
    except ValueError as error:
        raise DocumentUnreadableError(
            f"cannot read {str(path)!r}: {error}", hint=_NO_DOCUMENT
        ) from error
    text = _decode(data, path)
    if not text.strip():
        raise DocumentUnreadableError(f"{str(path)!r} is empty", hint=_NO_DOCUMENT)
    log = DefectLog()
    value = _parse(text, path, Pointer(name), log)
    return LoadedFile(value, "sha256:" + hashlib.sha256(data).hexdigest(), log.in_order())


def _decode(data: bytes, path: Path) -> str:
    """Return the text of ``data``, without a byte order mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise DocumentUnreadableError(
            f"{str(path)!r} is encoded as UTF-16 or UTF-32, or is no text", hint=_RESAVE
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentUnreadableError(
            f"{str(path)!r} is not encoded as UTF-8",
            why=f"byte {error.start} is {data[error.start]:#04x}",
            hint=_RESAVE,
        ) from error


def _parse(text: str, path: Path, place: Pointer, log: DefectLog) -> Any:
    """Return the value of ``text``, as JSON where it looks like that, else as YAML."""
    if path.suffix.lower() == ".json" or text.lstrip()[:1] == "{":
        try:
            return _from_json(text, place, log)
        except json.JSONDecodeError as error:
            if path.suffix.lower() == ".json":
                raise DocumentUnreadableError(
                    f"{str(path)!r} is not JSON",
                    why=f"line {error.lineno}, column {error.colno}: {error.msg}",
                    hint="correct the file at that line",
                ) from error
        except RecursionError as error:
            raise _too_deep(path) from error
    try:
        return _YamlBuilder(path, place, log).build(text)
    except yaml.YAMLError as error:
        # PyYAML 6.0.4 counts by itself, where others recurse until Python stops them.
        if "maximum nesting depth" in str(error):
            raise _too_deep(path) from error
        raise DocumentUnreadableError(
            f"{str(path)!r} is neither JSON nor YAML",
            why=_yaml_reason(error),
            hint="correct the file at that line",
        ) from error


def _yaml_reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


def _too_deep(path: Path) -> DocumentUnreadableError:
    return DocumentUnreadableError(
        f"{str(path)!r} is nested too deeply",
        why=f"at most {MAX_DEPTH} levels are read",
        hint="move inner schemas to components/schemas and refer to them with $ref",
    )


# --- JSON ---------------------------------------------------------------------------------------


def _from_json(text: str, place: Pointer, log: DefectLog) -> Any:
    doubled: list[tuple[dict[str, Any], str]] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            names = [key for key, _ in pairs]
            doubled.extend((value, name) for name in value if names.count(name) > 1)
        return value

    value = json.loads(text, object_pairs_hook=mapping, parse_int=_integer)
    if "\\ud" in text or "\\uD" in text:
        value = _without_surrogates(value, place, log)
    elif doubled:
        _locate(value, {id(owner): name for owner, name in doubled}, place, log)
    return value


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _locate(root: Any, doubled: dict[int, str], place: Pointer, log: DefectLog) -> None:
    """Note where the mappings stand in which a key was given twice."""
    stack = [(root, place)]
    while stack:
        value, here = stack.pop()
        if id(value) in doubled:
            _note_duplicates(here / doubled[id(value)], log)
        stack.extend((inner, here / key) for key, inner in _children(value))


def _children(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _note_duplicates(place: Pointer, log: DefectLog) -> None:
    log.error(place, f"the key {place.path[-1]!r} stands twice in one mapping; the last one counts")


def _without_surrogates(value: Any, place: Pointer, log: DefectLog) -> Any:
    """Return ``value`` with halves of surrogate pairs replaced: no UTF-8 file can hold them."""
    if isinstance(value, dict):
        return {
            _whole(key, place, log): _without_surrogates(inner, place / key, log)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_surrogates(inner, place / i, log) for i, inner in enumerate(value)]
    return _whole(value, place, log) if isinstance(value, str) else value


def _whole(text: str, place: Pointer, log: DefectLog) -> str:
    if not _SURROGATE.search(text):
        return text
    clean = _SURROGATE.sub("\ufffd", text)
    where = Pointer(place.file, tuple(_SURROGATE.sub("\ufffd", part) for part in place.path))
    log.error(where, f"half a surrogate pair in {clean[:40]!r} is read as U+FFFD")
    return clean


# --- YAML ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is being read."""

    value: Any
    anchor: str | None
    key: str | None = None
    """Of a mapping: the key whose value comes next."""
    merged: list[dict[str, Any]] = field(default_factory=list)
    weight: int = 1
    """Values inside, aliases written out."""


_UNFINISHED: Final = object()


class _YamlBuilder:
    """Builds values from YAML events, by the rules of YAML 1.2.

    Not PyYAML's own constructor: it refuses an anchor given twice, reads ``no`` as false and
    dates as objects, and does not tell where a key is doubled. Merge keys are kept from YAML 1.1.
    """

    def __init__(self, path: Path, place: Pointer, log: DefectLog) -> None:
        self._path = path
        self._place = place
        self._log = log
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0
        self._root: Any = None

    def build(self, text: str) -> Any:
        """Return the value of the only document in ``text``."""
        documents = 0
        for event in yaml.parse(text, Loader=_LOADER):
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.MappingStartEvent():
                    self._open({}, event)
                case yaml.SequenceStartEvent():
                    self._open([], event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._close()
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        raise self._yaml_error(event, "a second YAML document starts here")
                case _:
                    pass
        return self._root

    def _yaml_error(self, event: yaml.Event, why: str) -> DocumentUnreadableError:
        return DocumentUnreadableError(
            f"{str(self._path)!r} cannot be read as an API description",
            why=f"line {event.start_mark.line + 1}: {why}" if event.start_mark else why,
            hint="correct the file at that line",
        )

    def _open(self, value: Any, event: yaml.CollectionStartEvent) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise _too_deep(self._path)
        if self._awaits_key():
            raise self._yaml_error(event, "a mapping or a list cannot be a key")
        if event.anchor:
            self._anchors[event.anchor] = (_UNFINISHED, 0)
        self._stack.append(_Frame(value, event.anchor))

    def _close(self) -> None:
        frame = self._stack.pop()
        value = frame.value
        if frame.merged:
            value = {k: v for merged in reversed(frame.merged) for k, v in merged.items()} | value
        if frame.anchor:
            self._anchors[frame.anchor] = (value, frame.weight)
        self._put(value, frame.weight)

    def _awaits_key(self) -> bool:
        return (
            bool(self._stack)
            and self._stack[-1].key is None
            and isinstance(self._stack[-1].value, dict)
        )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        is_plain = not event.style and event.implicit[0]
        if self._awaits_key():
            self._put_key("\0<<" if is_plain and event.value == "<<" else event.value)
            value: Any = event.value
        else:
            value = _resolve_scalar(event.value, event.tag, is_plain=is_plain)
            self._put(value, 1)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise self._yaml_error(event, f"no anchor &{event.anchor} stands before this alias")
        value, weight = self._anchors[event.anchor]
        if value is _UNFINISHED:
            raise self._yaml_error(event, f"the alias *{event.anchor} stands inside its own anchor")
        self._aliased += weight
        if self._aliased > MAX_ALIASED_VALUES:
            raise self._yaml_error(
                event, f"aliases stand for more than {MAX_ALIASED_VALUES:,} values"
            )
        if not self._awaits_key():
            self._put(value, weight)
        elif isinstance(value, dict | list):
            raise self._yaml_error(event, "a mapping or a list cannot be a key")
        else:
            self._put_key(str(value))

    def _put_key(self, key: str) -> None:
        frame = self._stack[-1]
        if key in frame.value:
            path = (
                *(
                    outer.key if outer.key is not None else str(len(outer.value))
                    for outer in self._stack[:-1]
                ),
                key,
            )
            _note_duplicates(Pointer(self._place.file, path), self._log)
        frame.key = key

    def _put(self, value: Any, weight: int) -> None:
        """Give ``value`` to the collection being read."""
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        frame.weight += weight
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        key, frame.key = frame.key, None
        if key != "\0<<":
            frame.value[key] = value
        elif isinstance(value, dict):
            frame.merged.append(value)
        elif isinstance(value, list):
            frame.merged.extend(inner for inner in value if isinstance(inner, dict))


def _resolve_scalar(text: str, tag: str | None, *, is_plain: bool) -> Any:
    """Return the value of a scalar by the core schema of YAML 1.2; dates stay text."""
    if not is_plain and (
        tag is None or tag.rpartition(":")[2] not in {"int", "float", "bool", "null"}
    ):
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return (
            int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
            if len(text) <= _MAX_DIGITS
            else float(text)
        )
    return float(text) if _FLOAT.fullmatch(text) else text


_ONLY: Final = "; only files beside or below the document are read"


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """A reference that leads nowhere, and why."""

    reason: str


class References:
    """The files of one document, read when a reference first leads to them."""

    def __init__(self, main: Path, loaded: LoadedFile) -> None:
        self._main = main.name
        self._folder = main.parent
        with needs("openapi", "API descriptions"):
            from referencing import Registry, Resource
        self._registry: Registry[Any] = Registry(
            retrieve=self._retrieve  # type: ignore[call-arg]  # attrs calls _retrieve so
        )
        self._registry = self._registry.with_resource("", Resource.opaque(loaded.value))
        self.root = JsonNode(loaded.value, Pointer())
        self.log = DefectLog()
        """Defects of the files read so far."""
        self.files: dict[str, str] = {}
        """The other files read so far: name, seen from the document, to the hash of its bytes."""
        self.log.extend(loaded.defects)

    def follow(self, node: JsonNode) -> JsonNode | BrokenReference:
        """Return what ``node`` refers to in the end; ``node`` itself if it is no reference."""
        seen = set()
        while isinstance(node.value, dict) and "$ref" in node.value:
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
        file = self._file_of(reference, node.place.file)
        if isinstance(file, BrokenReference):
            return file
        fragment = reference.partition("#")[2]
        if fragment and not fragment.startswith("/"):
            return BrokenReference(f"$ref {reference!r}: only JSON pointers (#/…) are followed")
        return self._look_up(file, fragment, reference)

    def _file_of(self, reference: str, base: str) -> str | BrokenReference:
        """Return the name of the file that ``reference``, standing in ``base``, is about."""
        written = reference.partition("#")[0]
        if not written:
            return base
        try:
            is_remote = bool(urlsplit(written).scheme or urlsplit(written).netloc)
        except ValueError:
            is_remote = True
        name = unquote(written)
        if is_remote:
            return BrokenReference(f"$ref {reference!r} is a URL{_ONLY}")
        if name.startswith(("/", "\\")) or "\0" in name:
            return BrokenReference(f"$ref {reference!r} is an absolute path{_ONLY}")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(base), name))
        if file == ".." or file.startswith("../"):
            return BrokenReference(f"$ref {reference!r} leaves the document's folder{_ONLY}")
        return "" if file == self._main else file

    def _look_up(self, file: str, fragment: str, reference: str) -> JsonNode | BrokenReference:
        from referencing.exceptions import (
            NoSuchResource,
            Unresolvable,
            Unretrievable,
        )

        try:
            retrieved = self._registry.get_or_retrieve(file)
        except (NoSuchResource, Unretrievable) as error:
            return BrokenReference(f"$ref {reference!r}: {_cause(error)}")
        self._registry = retrieved.registry
        try:
            found = retrieved.value.pointer(fragment, resolver=self._registry.resolver())
        except (Unresolvable, LookupError, TypeError, ValueError):
            near = _near(retrieved.value.contents, unquote(fragment))
            return BrokenReference(f"$ref {reference!r} points at nothing{near}")
        return JsonNode(found.contents, Pointer(file, pointer_segments(unquote(fragment))))

    def _retrieve(self, file: str) -> "Resource[Any]":
        """Read another file of the document; called once for each."""
        from referencing import Resource

        path = self._folder / file
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise PermissionError(f"{file!r} leads out of the document's folder")
        loaded = load_file(path, name=file)
        self.files[file] = loaded.sha256
        self.log.extend(loaded.defects)
        return Resource.opaque(loaded.value)


def _near(value: Any, fragment: str) -> str:
    """Return what the first part of a pointer that is not there may have been meant for."""
    for part in pointer_segments(fragment):
        if isinstance(value, dict):
            if part not in value:
                names = difflib.get_close_matches(part, value, n=3)
                return f"; near names: {', '.join(names)}" if names else ""
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            break
    return ""


def _cause(error: BaseException) -> str:
    """Return the reason for which a file could not be read, in one line."""
    cause = error.__cause__ or error
    if isinstance(cause, DocumentUnreadableError):
        return f"{cause.what} ({cause.why})" if cause.why else cause.what
    return str(cause)
