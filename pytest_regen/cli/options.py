"""Options that several commands share, and what is made of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pytest_regen.errors import UsageError
from pytest_regen.regeneration import Budget, TurnSettings
from pytest_regen.regeneration.values import Progress
from pytest_regen.settings import find_settings
from pytest_regen.turns.values import Provider

__all__ = [
    "AsJson",
    "Attempts",
    "BudgetTokens",
    "CassetteFile",
    "DryRun",
    "Jobs",
    "Model",
    "ProviderName",
    "Record",
    "RecordChoice",
    "TurnOptions",
]


class RecordChoice(StrEnum):
    """Record modes, as vcrpy and pytest-recording word them."""

    NONE = "none"
    ONCE = "once"
    NEW_EPISODES = "new_episodes"
    ALL = "all"
    REWRITE = "rewrite"


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be asked; ask and write nothing.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="Model to ask instead of the stored one.")
]
Attempts = Annotated[
    int | None, typer.Option("--attempts", min=1, help="Replies per page at most.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Pages asked at the same time.")]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget", min=1, help="Tokens this command may spend.")
]
CassetteFile = Annotated[
    Path | None, typer.Option("--cassette", help="Recording to replay from, or to record to.")
]
Record = Annotated[RecordChoice, typer.Option("--record", help="Record mode of the cassette.")]
ProviderName = Annotated[
    str | None,
    typer.Option("--provider", metavar="MODULE:ATTR", help="Ask this provider instead of the API."),
]


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What the command line says about turns with a model."""

    model: str | None
    attempts: int | None
    budget: int | None
    jobs: int
    cassette: Path | None
    record: RecordChoice
    provider: str | None

    def replies(self) -> int:
        """Return how many replies a page may take: the option, the project's table, or 2."""
        return self.attempts or find_settings(Path.cwd()).attempts or 2

    @contextmanager
    def turns(self, progress: Callable[[Progress], None] | None) -> Iterator[TurnSettings]:
        """Yield how pages are asked, the cassette open meanwhile.

        Raises:
            MissingKeyError: a live call is asked for and no key is set.
            UsageError: the options contradict each other.
        """
        if self.cassette is None and self.record is not RecordChoice.NONE:
            raise UsageError(
                f"--record {self.record} has nothing to record to",
                hint="name a file with --cassette FILE",
            )
        with self._cassette():
            yield TurnSettings(
                self._provider(),
                model=self.model or find_settings(Path.cwd()).model,
                budget=Budget(self.budget),
                jobs=self.jobs,
                progress=progress,
            )

    @contextmanager
    def _cassette(self) -> Iterator[None]:
        if self.cassette is None:
            yield
            return
        from pytest_regen.cassettes import use_cassette  # noqa: PLC0415 - loads vcrpy

        with use_cassette(self.cassette, mode=self.record.value):
            yield

    def _provider(self) -> Provider:
        from pytest_regen.turns import (  # noqa: PLC0415 - loads the SDK when a turn is made
            load_provider,
            provider_from_environment,
        )

        if self.provider:
            return load_provider(self.provider)
        return provider_from_environment(self.model)
