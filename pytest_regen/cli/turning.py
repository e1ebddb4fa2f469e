"""How a command's turns with a model are made, from its options and the project's settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_regen.cli.options import RecordChoice
from pytest_regen.cli.output import Tell
from pytest_regen.cli.project import Project
from pytest_regen.errors import UsageError
from pytest_regen.regeneration import Budget, TurnSettings
from pytest_regen.turns.values import Provider

__all__ = ["TurnOptions"]

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What the command line says about turns with a model."""

    project: Project
    model: str | None
    attempts: int | None
    budget: int | None
    jobs: int
    cassette: Path | None
    record: RecordChoice
    provider: str | None

    def replies(self) -> int:
        """Return how many replies a page may take: the option, the project's table, or 2."""
        return self.attempts or self.project.settings.attempts or _ATTEMPTS

    @contextmanager
    def turns(self, progress: Tell | None) -> Iterator[TurnSettings]:
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
                model=self.model or self.project.model,
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

        mode = "new_episodes" if self.cassette.is_file() else "once"
        again = f"the same command with --record {mode} and ANTHROPIC_API_KEY set"
        with use_cassette(self.cassette, mode=self.record.value, record_command=again):
            yield

    def _provider(self) -> Provider:
        from pytest_regen.turns import (  # noqa: PLC0415 - loads the SDK when a turn is made
            load_provider,
            provider_from_environment,
        )

        if self.provider:
            return load_provider(self.provider)
        return provider_from_environment(self.model or self.project.model)
