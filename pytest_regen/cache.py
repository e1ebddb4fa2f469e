"""Results that are dear to compute, kept between runs in ``.regen/cache/``.

A repository may come from anywhere, with such a folder in it: a result counts only if it carries a
seal made with a key that lies outside of the repository, with the user, or in ``REGEN_CACHE_KEY``.
Whatever is wrong with the folder, a file or the key is a miss, never an error.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_regen.files import is_linked, make_ignored_folder
from pytest_regen.strict_json import json_bytes, json_or_none

VARIABLE: Final = "REGEN_CACHE_KEY"
"""The environment variable with a secret of one's own, for caches that machines share."""

_FORMAT: Final = 1
# Characters of a secret from the environment; a shorter one is none.
_SHORTEST: Final = 16
# Bytes of one entry.
_LARGEST: Final = 16 << 20
# An entry, or what a killed process left of one.
_ENTRY: Final = re.compile(r"[0-9a-f]{64}\.(?:json|[0-9a-f]{8}\.tmp)")
# Seconds after which an entry goes.
_KEPT: Final = 30 * 86_400.0


class Cache:
    """A folder of sealed JSON values by section and key.

    Processes may share it, and be killed at any moment. After a month an entry is dropped.
    """

    def __init__(self, root: Path) -> None:
        """Take the folder, usually ``.regen/cache`` of a project; it is made when needed.

        Args:
            root: the folder. It ignores itself for git.
        """
        self.root = root
        self._is_trimmed = False
        self._is_closed = False

    def get(self, section: str, key: str) -> Any | None:
        """Return what was put there, or ``None``.

        Args:
            section: what sort of result; the name of a folder.
            key: names all that the result depends on.
        """
        path = self._path(section, key)
        body = _read(path)
        if body is None:
            return None
        seal, _, value = body.partition(b"\n")
        right = self._seal(section, key, value)
        if right is None or not hmac.compare_digest(seal, right):
            return None
        return json_or_none(value)

    def put(self, section: str, key: str, value: Any) -> bool:
        """Keep a JSON value; return whether that was possible.

        Raises:
            TypeError: the value is not JSON.
        """
        body = json_bytes(value)
        seal, path = self._seal(section, key, body), self._path(section, key)
        if seal is None or self._is_closed or len(body) > _LARGEST or is_linked(path.parent):
            return False
        try:
            make_ignored_folder(self.root)
            path.parent.mkdir(exist_ok=True)
            beside = path.with_suffix(f".{secrets.token_hex(4)}.tmp")
            # Not synced: half a file has no valid seal.
            beside.write_bytes(seal + b"\n" + body)
            beside.replace(path)
        except OSError:
            # Read-only, full, or not a folder: not tried again for each result of this run.
            self._is_closed = True
            return False
        if not self._is_trimmed:
            self._is_trimmed = True
            self._trim()
        return True

    def _trim(self) -> None:
        oldest = time.time() - _KEPT
        for path in self.root.glob("*/*"):
            # What lies behind a link is somebody else's.
            if _ENTRY.fullmatch(path.name) and not is_linked(path.parent):
                with suppress(OSError):
                    if path.lstat().st_mtime < oldest:
                        path.unlink()

    def _path(self, section: str, key: str) -> Path:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.root / section / f"{digest}.json"

    def _seal(self, section: str, key: str, body: bytes) -> bytes | None:
        secret = user_secret(self.root.absolute().parent.parent)
        if secret is None:
            return None
        sealed = hmac.new(secret, json_bytes([_FORMAT, section, key]), "sha256")
        sealed.update(b"\n" + body)
        return sealed.hexdigest().encode()


def _read(path: Path) -> bytes | None:
    """Return a file's bytes; ``None`` for links, pipes, large files and what is not there."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.parent.is_symlink():
            return None
        handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(handle)
            is_read = stat.S_ISREG(facts.st_mode) and facts.st_size <= _LARGEST + 100
            return file.read() if is_read else None
    except (OSError, ValueError):
        return None


def user_secret(project: Path) -> bytes | None:
    """Return a secret that no repository can know; ``None`` where the user can have none.

    It comes from the environment, else from the user's key, which is made once.

    Args:
        project: a key that lies in it is no secret.
    """
    variable = os.environ.get(VARIABLE, "")
    if len(variable) >= _SHORTEST:
        return variable.encode("utf-8", "surrogatepass")
    try:
        key = user_folder() / "cache.key"
        return None if project.resolve() in key.resolve().parents else user_key()
    except (OSError, RuntimeError):  # no home, or none that can be written
        return None


def user_key() -> bytes:
    """Return a secret of the user's, made once and kept in their cache folder.

    Raises:
        OSError, RuntimeError: there is no such folder, or others can read what is in it.
    """
    path = user_folder() / "cache.key"
    if (key := _key_in(path)) is None:
        _make_key(path)
        key = _key_in(path)
    if key is None:
        raise PermissionError(f"{path} is not a key that only this user can read")
    return key


def user_folder() -> Path:
    """Return where this package may keep what belongs to the user; it need not exist.

    Raises:
        RuntimeError: the user has no home.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (home if home.is_absolute() else Path.home() / ".cache") / "pytest-regen"


def _key_in(path: Path) -> bytes | None:
    """Return the key of a file that only its user, who is us, can have written."""
    content = _read(path)
    if content is None or not re.fullmatch(rb"[0-9a-f]{64}", content):
        return None
    if os.name == "posix":
        facts = path.stat(follow_symlinks=False)
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
            return None
    return content


def _make_key(path: Path) -> None:
    """Make the key, unless another process was faster."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".key-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(32).encode())
        # A link, not a rename: of two processes the first one's key stays.
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()
