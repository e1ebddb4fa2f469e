"""Which bytes a document is made of, told without reading it as one."""

import os
import posixpath
import re
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pytest_regen.files import content_hash

_FILE: Final = re.compile(r"""\$ref["']?\s*:\s*["']?([^"'#\s]+)|([^"'#\s]+\.(?:json|ya?ml))\b""")
"""A reference, or a name that a discriminator or an anchor may lead to."""


def document_at(store: Path, reference: str) -> Path:
    """Return the path of a document, one for all stores that were made from it.

    Args:
        store: the folder of a store; it need not be there yet.
        reference: the path from there.
    """
    path = store / reference
    # Not of the file itself, because what it refers to lies where the link does; and not by
    # ``resolve``, because that raises where links lead round.
    return Path(os.path.realpath(path.parent)) / path.name


def document_digests(path: Path) -> dict[str, str | None]:
    """Return the digest of a document and of every file that it may refer to, by their names.

    More files than the document needs may be among them: a digest that is looked at in vain costs
    less than a change that is not seen.
    """
    digests: dict[str, str | None] = {}
    waiting = [path.name]
    while waiting:
        name = waiting.pop()
        digests[name] = digest = content_hash(path.parent / name)
        for reference in _names_in(path.parent / name, digest) if digest else ():
            near = posixpath.normpath(posixpath.join(posixpath.dirname(name), reference))
            # Only files beside or below the document are read.
            is_below = not near.startswith(("..", "/"))
            if is_below and near not in {*digests, *waiting} and (path.parent / near).is_file():
                waiting.append(near)
    return digests


@lru_cache(maxsize=64)
def _names_in(file: Path, _digest: str) -> frozenset[str]:
    """Return the names in a file; hundreds of stores ask for those of one large document."""
    text = file.read_text("utf-8", "replace")
    return frozenset(unquote(first or second) for first, second in _FILE.findall(text))
