"""Names of folders and files that every system takes; no two operations share a folder."""

import hashlib
import re

__all__ = ["safe_file_name", "store_slug"]

_LONGEST = 80
"""Characters of the readable part; with suffixes it stays far below every system's 255 bytes."""

_PLAIN_PATH = re.compile(r"(?:/[a-z0-9.~-]*[a-z0-9~-])+")
_ENDS_LIKE_HASH = re.compile(r"-[0-9a-f]{8}\Z")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]+")
_RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{device}{number}" for device in ("com", "lpt") for number in range(10)
}
"""Names that Windows keeps for devices, whatever the suffix or case."""


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def store_slug(method: str, path: str) -> str:
    """Return the folder name of an operation's store, such as ``GET_v1_projects``.

    A path of lower-case segments is readable as it is. Any other (parameters, capitals, ``_``, what
    a shell or file system minds, great length) gets a hash behind it, so that no two operations
    share a folder, not even where case does not count.
    """
    method = method.upper()
    readable = method + path.replace("/", "_")
    is_plain = (
        method.isascii()
        and method.isalpha()
        and _PLAIN_PATH.fullmatch(path) is not None
        and len(readable) <= _LONGEST
        and not _ENDS_LIKE_HASH.search(readable)
    )
    if is_plain:
        return readable
    readable = _UNSAFE.sub("-", path.replace("{", "").replace("}", "").replace("/", "_"))
    start = re.sub(r"_{2,}", "_", f"{_UNSAFE.sub('-', method)}_{readable}")[:_LONGEST].strip("_.~-")
    return f"{start}-{_short_hash(f'{method} {path}')}"


def safe_file_name(type_name: str) -> str:
    """Return ``type_name`` where that is a safe file name, else a readable one with a hash."""
    is_plain = (
        _PLAIN_NAME.fullmatch(type_name) is not None
        and len(type_name) <= _LONGEST
        and type_name.lower() not in _RESERVED
    )
    if is_plain:
        return type_name
    start = _UNSAFE.sub("_", type_name)[:_LONGEST].strip("_.~-") or "type"
    return f"{start}_{_short_hash(type_name)}"
