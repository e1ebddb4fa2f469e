"""Addresses of articles of the documentation, for messages that can carry a link.

Nothing is imported until a link is asked for.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, Protocol
from urllib.parse import quote

VARIABLE: Final = "PYTEST_REGEN_DOCS_URL"
"""The environment variable that names the site of the documentation: an intranet's, a folder's."""

_SCHEMES: Final = ("https://", "http://", "file:///")


def docs_link(page: str, *, docs_url: str | None = None) -> str | None:
    """Return the address of an article; ``None`` where no site of the documentation is known.

    The site is the one that the environment variable ``PYTEST_REGEN_DOCS_URL`` names, else
    ``docs_url``, else the documentation in the metadata of the installed distribution. An
    address that is not of http, https or an absolute ``file:`` is none; neither is one with
    blanks or control characters, which a terminal might obey.

    Args:
        page: the article's file below ``docs/``, with an anchor if need be:
            ``cassettes.md#record-modes``.
        docs_url: ``docs_url`` of the project's settings, where the caller has read them.
    """
    base = next(filter(None, (os.environ.get(VARIABLE), docs_url, _published())), "")
    if not base.startswith(_SCHEMES) or not (base.isprintable() and base.isascii()) or " " in base:
        return None
    path, _, anchor = page.partition("#")
    folder = path.removesuffix(".md")
    folder = "" if folder == "index" else folder.removesuffix("/index") + "/"
    # A server turns a folder into its index; a browser that reads files does not.
    index = "index.html" if base.startswith("file:") else ""
    return f"{base.rstrip('/')}/{quote(folder)}{index}{anchor and '#' + quote(anchor)}"


def code_link(code: str, *, docs_url: str | None = None) -> str | None:
    """Return the address of the article on an issue code, as ``docs_link`` does.

    ``None`` for a code of a user's own validator or kind: no article of ours explains it.
    """
    from pytest_regen.validation.issues import CODES

    return docs_link(f"codes/{code}.md", docs_url=docs_url) if code in CODES else None


_CODE: Final = re.compile(r"(?:(?<=\[)|(?<=: )|(?<=^  ))[A-Z]{2}[A-Z_]*(?=\]|: |  )")
"""A code as messages write it: ``[CODE]``, ``: CODE: `` or at the head of an indented line."""


def codes_in(line: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a line of a message may name an issue code: start, end, and the code."""
    for found in _CODE.finditer(line):
        yield found.start(), found.end(), found[0]


def link_codes(text: str, link: Callable[[str], str | None]) -> str:
    """Return text for a terminal, in which issue codes are hyperlinks (OSC 8).

    Args:
        text: lines of a message.
        link: where a code is explained; ``None`` leaves it as it is.
    """

    def linked(found: re.Match[str]) -> str:
        address = link(found[0])
        return f"\x1b]8;;{address}\x1b\\{found[0]}\x1b]8;;\x1b\\" if address else found[0]

    return "\n".join(_CODE.sub(linked, line) for line in text.split("\n"))


class _Stream(Protocol):
    def isatty(self) -> bool: ...


def shows_links(stream: _Stream) -> bool:
    """Return whether hyperlinks may be written: to a terminal that knows more than plain text.

    ``FORCE_HYPERLINK=0`` switches them off, as elsewhere.
    """
    return (
        stream.isatty()
        and os.environ.get("TERM", "") not in {"", "dumb", "linux"}
        and os.environ.get("FORCE_HYPERLINK", "1") != "0"
    )


@cache
def _published() -> str | None:
    """Return the documentation's address in the metadata of the distribution."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("pytest-regen").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    labelled = (url.partition(",")[::2] for url in urls)
    return next((url.strip() for label, url in labelled if label == "Documentation"), None)
