"""How a command's turns with a model are made, from its options and the project's settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_regen.cli.output import RecordChoice, Tell
from pytest_regen.cli.project import Project
from pytest_regen.errors import UsageError
from pytest_regen.regeneration import TurnSettings
from pytest_regen.turns import AnthropicProvider, Budget, load_provider
from pytest_regen.turns.providers import require_api_key

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

        Args:
            progress: shows each page.

        Raises:
            UsageError: the options contradict each other, or ``--provider`` names no provider.
        """
        if self.cassette is None and self.record is not RecordChoice.NONE:
            raise UsageError(
                f"--record {self.record} has nothing to record to",
                hint="name a file with --cassette FILE",
            )
        with self._cassette():
            yield TurnSettings(
                load_provider(self.provider) if self.provider else AnthropicProvider(self._model),
                model=self._model,
                budget=Budget(self.budget),
                jobs=self.jobs,
                progress=progress,
                ready=None if self.provider else require_api_key,
            )

    @property
    def _model(self) -> str | None:
        return self.model or self.project.model

    @contextmanager
    def _cassette(self) -> Iterator[None]:
        if self.cassette is None:
            yield
            return
        from pytest_regen.cassettes import use_cassette

        mode = "new_episodes" if self.cassette.is_file() else "once"
        again = f"the same command with --record {mode} and ANTHROPIC_API_KEY set"
        settings = self.project.settings.cassettes
        with use_cassette(
            self.cassette,
            mode=self.record.value,
            record_command=again,
            keep_headers=settings.keep_headers,
            drop_headers=settings.drop_headers,
            passthrough_hosts=settings.passthrough_hosts,
        ):
            yield
