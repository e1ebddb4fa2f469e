"""Stores written through the real client over loopback, for the suites that look at whole runs."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference_writer import ReferenceWriter, Style
from reference_writer_request import PageRequest, parse_request

from pytest_regen.documents import Operation, read_document
from pytest_regen.emulator import Emulator
from pytest_regen.emulator.values import Responder
from pytest_regen.regeneration import TurnSettings, generate_store
from pytest_regen.stores import RegenStore
from pytest_regen.turns import AnthropicProvider
from pytest_regen.validation import validate_store
from pytest_regen.validation.issues import Issue

EXAMPLE = Path(__file__).parents[2] / "examples" / "csharp_dto" / "api.yaml"
EXAMPLE_OPERATION = "GET /v1/port-calls/{callId}"
SMALL_OPERATION = "GET /v1/tides"
REAL_DOCUMENTS = (
    "uber.swagger-2.0.json",
    "box-2025.openapi-3.0.json",
    "discord.openapi-3.1.json",
)
KEY = "sk-ant-of-a-test"


@dataclass(frozen=True)
class Served:
    """An emulator and a client of it."""

    emulator: Emulator
    provider: AnthropicProvider

    def answers(self, responder: Responder) -> None:
        """Answer with ``responder`` from now on, and forget what was asked before."""
        self.emulator.responder = responder
        self.emulator.requests.clear()

    @property
    def settings(self) -> TurnSettings:
        """Settings that ask this emulator."""
        return TurnSettings(self.provider)

    @property
    def asked(self) -> list[PageRequest]:
        """The pages that were asked for, in order."""
        return [parse_request(body) for body in self.bodies]

    @property
    def bodies(self) -> list[Mapping[str, Any]]:
        """The requests for messages, in order."""
        return [request.body for request in self.emulator.requests]


@contextmanager
def served(responder: Responder | None = None, **options: Any) -> Iterator[Served]:
    """Yield an emulator that answers with ``responder``; ``options`` are the client's."""
    with Emulator(responder or ReferenceWriter()) as emulator:
        provider = AnthropicProvider(api_key=KEY, base_url=emulator.base_url, **options)
        try:
            yield Served(emulator, provider)
        finally:
            provider.close()


def example_store(
    server: Served,
    out: Path,
    *,
    operation: str = EXAMPLE_OPERATION,
    style: int | str | Style | None = 0,
    **options: Any,
) -> RegenStore:
    """Return a store of the example's document, written without a mistake in one style."""
    server.answers(ReferenceWriter(style))
    made = generate_store(EXAMPLE, operation, out, provider=server.provider, **options)
    store = RegenStore.open(made.plan.path)
    assert issues_of(store) == []
    return store


def copy_of(store: RegenStore, folder: Path) -> Path:
    """Return a fresh copy of a store in ``folder``."""
    target = folder / store.path.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(store.path, target)
    return target


def issues_of(store: RegenStore) -> list[Issue]:
    """Return all that is wrong with a store, warnings too; what its document gives is not.

    Nor that it cannot be read: copies of a store lie elsewhere.
    """
    given = {("REVIEW", review.message) for review in store.ir.reviews}
    issues = [issue for result in validate_store(store).values() for issue in result.issues]
    issues = [issue for issue in issues if "cannot read" not in issue.message]
    return [issue for issue in issues if (issue.code, issue.message) not in given]


def errors_of(store: RegenStore) -> list[Issue]:
    """Return the errors of a store."""
    return [issue for result in validate_store(store).values() for issue in result.errors]


def real_operations(specs: Path) -> list[tuple[Path, Operation]]:
    """Return every operation with a JSON response schema in the real documents."""
    return [
        (specs / name, operation)
        for name in REAL_DOCUMENTS
        for operation in read_document(specs / name).operations
        if operation.is_answered_in_json
    ]
