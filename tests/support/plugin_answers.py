"""Providers for test projects of the plugin: they answer from the code of ``store_factory``."""

import re
from collections.abc import Callable

from store_factory import GOOD, MISSPELT

from pytest_regen.errors import TransportError
from pytest_regen.turns.values import Reply, TurnRequest, Usage

__all__ = ["Good", "Stubborn", "Unreachable", "asked_page"]

_TYPE = re.compile(r'^TYPE: "(.+)"$', re.MULTILINE)
_PAGE = re.compile(r"^\s*page (\d+) of", re.MULTILINE)


def asked_page(request: TurnRequest) -> tuple[str, int]:
    """Return the type and the page that a request asks for."""
    text = request.messages[0].content
    name, page = _TYPE.search(text), _PAGE.search(text)
    assert name is not None
    return name[1], int(page[1]) if page else 1


class _Answers:
    """Answers each page with a text, counts as a model would, and remembers what it was asked."""

    def __init__(self, answer: Callable[[tuple[str, int]], str]) -> None:
        self._answer = answer
        self.requests: list[TurnRequest] = []

    def send(self, request: TurnRequest) -> Reply:
        """Return the code of the page."""
        self.requests.append(request)
        usage = Usage(input_tokens=100, output_tokens=40)
        return Reply(self._answer(asked_page(request)), usage=usage, model=request.model)


class Good(_Answers):
    """Writes every page as it must be."""

    def __init__(self) -> None:
        super().__init__(GOOD.__getitem__)


class Stubborn(_Answers):
    """Makes the same mistake in ``Owner`` whatever it is told."""

    def __init__(self) -> None:
        super().__init__({**GOOD, **MISSPELT}.__getitem__)


class Unreachable:
    """Never answers."""

    def send(self, request: TurnRequest) -> Reply:
        """Fail as a broken line does."""
        raise TransportError(
            f"no answer from {request.model}", hint="check the connection, then run again"
        )
