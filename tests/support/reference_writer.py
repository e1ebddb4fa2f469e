"""A stand-in for a model that writes the right C# for exactly the page a request asks for.

It imports nothing of the package under test and sees only what arrives over HTTP: the body of a
Messages API request. What it writes is correct, in any of ``STYLES``. Told to make one of
``MISTAKES`` on a page, it makes it again and again, until the request begins with a correction
block in the agreed form that names a right code and the right field. It keeps no memory: the same
request gets the same reply, in every thread and process.

    writer = ReferenceWriter("record", mistake="drop_field", target=("Address", 1))
    reply = writer(body)                       # the text of the reply
    writer.expectation(body)                   # what a validator must find in it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reference_writer_csharp import STYLES, Style, draft_of, write
from reference_writer_mistakes import MISTAKES, Mistake
from reference_writer_request import (
    Correction,
    PageRequest,
    Unit,
    UnreadableRequestError,
    parse_request,
    text_of,
)

__all__ = [
    "MISTAKES",
    "STYLES",
    "Correction",
    "Expectation",
    "Mistake",
    "PageRequest",
    "ReferenceWriter",
    "Style",
    "Unit",
    "UnreadableRequestError",
    "parse_request",
    "request_body",
]

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a validator must say about a page with the mistake."""

    type_name: str
    page: int
    codes: tuple[frozenset[str], ...]
    """Of each set, at least one code must be reported for this type and page."""
    fields: tuple[str, ...]
    """Of these names, an issue must give one; empty where any place will do."""


class ReferenceWriter:
    """Answers requests for pages.

    Args:
        style: a name in ``STYLES``, a number counted round and round, or a style of one's own;
            ``None`` takes another one for each type.
        mistake: a name in ``MISTAKES``.
        target: type and page on which the mistake is made; ``None`` makes it wherever it can be.
        victim: which of the fields that the mistake can hit is hit.
    """

    def __init__(
        self,
        style: int | str | Style | None = 0,
        *,
        mistake: str | None = None,
        target: tuple[str, int] | None = None,
        victim: int = 0,
    ) -> None:
        self._style = None if style is None else style_named(style)
        self._mistake = MISTAKES[mistake] if mistake else None
        self._target = target
        self._victim = victim

    def __call__(self, body: Body, *, headers: object = None) -> str:
        """Return the reply to a Messages API request.

        A request that goes on after a reply cut by a limit gets the rest of that reply.

        Raises:
            UnreadableRequestError: the request asks for no page in the agreed form.
        """
        del headers
        page = parse_request(body)
        draft = draft_of(page, self._style or style_named(sum(page.type_name.encode())))
        mistake = self.mistake_on(page)
        if mistake and not self.is_corrected(page, mistake):
            mistake.make(draft, self._victim)
        return _unsaid(write(draft), body)

    def mistake_on(self, page: PageRequest) -> Mistake | None:
        """Return the mistake, if this page is its target and it can be made there."""
        here = self._target is None or page.key == self._target
        return self._mistake if here and self._mistake and self._mistake.applies(page) else None

    def is_corrected(self, page: PageRequest, mistake: Mistake) -> bool:
        """Return whether the request's correction block names the mistake."""
        fields = mistake.fields(page, self._victim)
        return any(
            correction.code in mistake.codes
            and (not fields or any(correction.names(name) for name in fields))
            for correction in page.corrections
        )

    def expectation(self, body: Body) -> Expectation | None:
        """Return what must be found in the reply to ``body``; ``None`` if it is correct."""
        page = parse_request(body)
        mistake = self.mistake_on(page)
        if mistake is None or self.is_corrected(page, mistake):
            return None
        fields = mistake.fields(page, self._victim)
        return Expectation(page.type_name, page.page, mistake.expects, fields)


def style_named(style: int | str | Style) -> Style:
    """Return a style by name, by number counted round and round, or as it is."""
    if isinstance(style, Style):
        return style
    if isinstance(style, int):
        return STYLES[style % len(STYLES)]
    return next(each for each in STYLES if each.name == style)


def request_body(system: str, user: str) -> dict[str, Any]:
    """Return a Messages API body of one prompt, for tests that need no HTTP."""
    return {"system": system, "messages": [{"role": "user", "content": user}]}


def _unsaid(reply: str, body: Body) -> str:
    """Return what of ``reply`` the assistant's earlier messages do not hold yet."""
    said = "".join(
        text_of(message["content"])
        for message in body["messages"]
        if message.get("role") == "assistant"
    )
    return reply.removeprefix(said) if said else reply
