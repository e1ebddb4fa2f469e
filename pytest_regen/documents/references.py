"""What a ``$ref`` points at, in the document or in a file beside or below it; never the network."""

import difflib
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from pytest_regen.documents.defects import DefectLog
from pytest_regen.documents.places import Node, Place, pointer_segments
from pytest_regen.documents.reading import LoadedFile, load_file
from pytest_regen.errors import DocumentUnreadableError
from pytest_regen.extras import needs

if TYPE_CHECKING:
    from referencing import Resource

__all__ = ["Broken", "References"]

_ONLY: Final = "; only files beside or below the document are read"


@dataclass(frozen=True, slots=True)
class Broken:
    """A reference that leads nowhere, and why."""

    reason: str


class References:
    """The files of one document, read when a reference first leads to them."""

    def __init__(self, main: Path, loaded: LoadedFile) -> None:
        self._main = main.name
        self._folder = main.parent
        with needs("openapi", "API descriptions"):
            from referencing import Registry, Resource  # noqa: PLC0415 - of an extra
        self._registry: Registry[Any] = Registry(
            retrieve=self._retrieve  # type: ignore[call-arg]  # attrs calls _retrieve so
        )
        self._registry = self._registry.with_resource("", Resource.opaque(loaded.value))
        self.root = Node(loaded.value, Place())
        self.log = DefectLog()
        """Defects of the files read so far."""
        self.files: dict[str, str] = {}
        """The other files read so far: name, seen from the document, to the hash of its bytes."""
        self.log.extend(loaded.defects)

    def follow(self, node: Node) -> Node | Broken:
        """Return what ``node`` refers to in the end; ``node`` itself if it is no reference."""
        seen = set()
        while isinstance(node.value, dict) and "$ref" in node.value:
            if node.place in seen:
                return Broken(f"$ref {node.value['$ref']!r} leads back to itself")
            seen.add(node.place)
            target = self.target(node)
            if isinstance(target, Broken):
                return target
            node = target
        return node

    def target(self, node: Node) -> Node | Broken:
        """Return the value that the ``$ref`` of ``node`` points at, one step."""
        reference = node.value["$ref"]
        if not isinstance(reference, str):
            return Broken(f"$ref must be a string, not {type(reference).__name__}")
        file = self._file_of(reference, node.place.file)
        if isinstance(file, Broken):
            return file
        fragment = reference.partition("#")[2]
        if fragment and not fragment.startswith("/"):
            return Broken(f"$ref {reference!r}: only JSON pointers (#/…) are followed")
        return self._look_up(file, fragment, reference)

    def _file_of(self, reference: str, base: str) -> str | Broken:
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
            return Broken(f"$ref {reference!r} is a URL{_ONLY}")
        if name.startswith(("/", "\\")) or "\0" in name:
            return Broken(f"$ref {reference!r} is an absolute path{_ONLY}")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(base), name))
        if file == ".." or file.startswith("../"):
            return Broken(f"$ref {reference!r} leaves the document's folder{_ONLY}")
        return "" if file == self._main else file

    def _look_up(self, file: str, fragment: str, reference: str) -> Node | Broken:
        from referencing.exceptions import (  # noqa: PLC0415 - of an extra; there by now
            NoSuchResource,
            Unresolvable,
            Unretrievable,
        )

        try:
            retrieved = self._registry.get_or_retrieve(file)
        except (NoSuchResource, Unretrievable) as error:
            return Broken(f"$ref {reference!r}: {_cause(error)}")
        self._registry = retrieved.registry
        try:
            found = retrieved.value.pointer(fragment, resolver=self._registry.resolver())
        except (Unresolvable, LookupError, TypeError, ValueError):
            near = _near(retrieved.value.contents, unquote(fragment))
            return Broken(f"$ref {reference!r} points at nothing{near}")
        return Node(found.contents, Place(file, pointer_segments(unquote(fragment))))

    def _retrieve(self, file: str) -> "Resource[Any]":
        """Read another file of the document; called once for each."""
        from referencing import Resource  # noqa: PLC0415 - as above

        path = self._folder / file
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise PermissionError(f"{file!r} leads out of the document's folder")
        loaded = load_file(path, name=file)
        self.files[file] = loaded.sha256
        self.log.extend(loaded.defects)
        return Resource.opaque(loaded.value)


def _near(value: Any, fragment: str) -> str:  # noqa: ANN401 - any JSON value
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
