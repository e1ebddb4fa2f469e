"""A text file put in the place of another: in one step, and never half of one."""

import errno
import os
import re
from pathlib import Path

__all__ = ["refuse_obstacle", "replace_file"]


def refuse_obstacle(path: Path) -> None:
    """Raise the error that making a file there would end in.

    A pipe or a device could be replaced by a file; as nobody means that, it is refused, too.

    Raises:
        OSError: none can be made.
    """
    folder = next(place for place in (*path.parents, Path()) if place.exists())
    code = 0
    if path.is_dir():
        code = errno.EISDIR
    elif path.exists() and not path.is_file():
        code = errno.ENODEV
    elif not folder.is_dir():
        code = errno.ENOTDIR
    elif not os.access(folder, os.W_OK | os.X_OK):
        code = errno.EACCES
    if code:
        raise OSError(code, "it is no file" if code == errno.ENODEV else os.strerror(code))


def replace_file(path: Path, content: str | bytes) -> None:
    """Write text or bytes beside ``path`` and move it there, so that nobody ever sees half a file.

    Raises:
        OSError: nothing can be written there; an older file is as it was.
    """
    import tempfile  # noqa: PLC0415 - most runs write nothing

    refuse_obstacle(path)
    # A name may be as long as the file system allows; this one must not be longer.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    # Linux tells without changing it for every other thread.
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return 0o022
    found = re.search(r"^Umask:\s*(\d+)", status, re.MULTILINE)
    return int(found[1], 8) if found else 0o022
