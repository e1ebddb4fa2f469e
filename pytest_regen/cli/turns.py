"""How a command's turns with a model are made, from its options and the project's settings."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regen.cli.output import EngineChoice, RecordChoice, fact, say, usage_line
from pytest_regen.cli.progress import RunProgress, progress_line_of
from pytest_regen.cli.project import Project
from pytest_regen.errors import MissingKeyError, UsageError
from pytest_regen.modes import (
    TABLE_PROVIDER,
    TEMPLATE,
    effective_provider,
    named_model,
    split_provider,
)
from pytest_regen.prompts import estimated_input_tokens
from pytest_regen.prompts.values import PromptEntry
from pytest_regen.regeneration import TurnSettings
from pytest_regen.regeneration.costs import AskSize, Estimate
from pytest_regen.regeneration.values import Pending
from pytest_regen.stores import RegenStore
from pytest_regen.turns import AnthropicProvider, Budget, cost_of, load_provider
from pytest_regen.turns.models import tokens_for
from pytest_regen.turns.providers import (
    KEY_VARIABLES,
    DryRunProvider,
    TemplateProvider,
    no_template,
    reference_of,
    require_api_key,
)
from pytest_regen.turns.values import DEFAULT_MODEL, Provider, Usage
from pytest_regen.validation.stores import is_by_template

if TYPE_CHECKING:
    from pytest_regen.turns.replies import ReplyJournal

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What the command line says about turns with a model."""

    project: Project
    model: str | None = None
    attempts: int | None = None
    budget: int | None = None
    jobs: int = 1
    cassette: Path | None = None
    record: RecordChoice = RecordChoice.NONE
    provider: str | None = None
    engine: EngineChoice = EngineChoice.LIVE
    pending: str = ""
    """The command, where what it would keep waits for review."""
    corrects: bool = False
    """Whether a person says what was wrong, which the template does not read."""

    @property
    def is_batch(self) -> bool:
        """Whether pages are asked in batches, at half the price."""
        return self.engine is EngineChoice.BATCH

    def replies(self) -> int:
        """Return how many replies a page may take: the option, the project's table, or 2."""
        return self.attempts or self.project.settings.attempts or _ATTEMPTS

    @property
    def by_template(self) -> bool:
        """Whether types are written by the template, so that no model is asked.

        A model or engine that is named on the command line is asked, whatever the project's table
        says.
        """
        if self.provider is not None:
            return self.provider == TEMPLATE
        is_model_named = self.model is not None or self.is_batch
        return not is_model_named and self.project.settings.provider == TEMPLATE

    @property
    def keeps_template(self) -> bool:
        """Whether the template writes again what it wrote: nothing says who is to answer."""
        named = self.provider, self.model, self.cassette, self.project.settings.provider
        return not (self.is_batch or self.corrects or any(named))

    def writes(self, store: RegenStore, type_name: str) -> bool:
        """Return whether a type of a store is written by the template."""
        return self.by_template or (self.keeps_template and is_by_template(store, type_name))

    def planning(self) -> TurnSettings:
        """Return the settings of a dry run, which asks nobody."""
        provider = TemplateProvider() if self.by_template else DryRunProvider()
        return TurnSettings(provider, keeps_template=self.keeps_template)

    def estimate(self, entry: PromptEntry) -> int:
        """Return about how many tokens a request with a prompt takes."""
        return tokens_for(estimated_input_tokens(entry), self._model or DEFAULT_MODEL)

    def size(self, size: AskSize) -> AskSize:
        """Return a request as this command would make it: a model that is named is asked."""
        return replace(size, model=self._model) if self._model else size

    def estimate_all(self, sizes: Iterable[AskSize], *, of: Estimate | None = None) -> Estimate:
        """Return what requests for pages take; the template writes pages for nothing.

        Args:
            sizes: of the requests.
            of: the sum that they are a part of.
        """
        asked = () if self.by_template else map(self.size, sizes)
        return Estimate(self.price_of, asked, of=of)

    def show_cost(self, estimate: Estimate) -> None:
        """Tell about what requests take, where there are any."""
        if estimate.pages:
            fact("cost", estimate.words(is_batch=self.is_batch))

    def price_of(self, usage: Usage, model: str) -> Decimal | None:
        """Return what one request costs in US dollars, not in a batch; ``None`` if unknown."""
        named, who = split_provider(self._who), self._who
        reference = reference_of(*named) if named else None if who == TEMPLATE else who
        return cost_of(usage, model, reference, self.project.settings.price.get)

    def spent(self, calls: int, usage: Usage, *, by_template: bool = False) -> str:
        """Return what asking for types took, in words."""
        if self.by_template:
            return "written by the template, no call"
        if by_template and not calls:
            return "written by the template, as before; --model or --provider asks a model"
        return usage_line(calls, usage)

    @contextmanager
    def run(
        self, title: str, *, of_types: bool = True, as_json: bool = False
    ) -> Iterator[tuple[RunProgress, TurnSettings]]:
        """Yield how pages are asked, and how far that is, which is shown while the block runs.

        Args:
            title: what the command does: ``generating``.
            of_types: as of ``turns``.
            as_json: whether a program reads the output.
        """
        with (
            progress_line_of(
                title,
                places="store" if of_types else "file",
                as_json=as_json,
                is_free=of_types and self.by_template,
            ) as progress,
            self.turns(progress, of_types=of_types) as settings,
        ):
            yield progress, settings

    @contextmanager
    def turns(
        self, progress: RunProgress | None, *, of_types: bool = True
    ) -> Iterator[TurnSettings]:
        """Yield how pages are asked, the cassette open meanwhile.

        Args:
            progress: shows how far the run is.
            of_types: whether types of a store are asked for, which the template can write, and no
                units of another kind.

        Raises:
            UsageError: the options contradict each other, or ``--provider`` names no provider.
        """
        self._refuse_contradictions(of_types=of_types)
        if self.cassette is None and self.record is not RecordChoice.NONE:
            raise UsageError(
                f"--record {self.record} has nothing to record to",
                hint="name a file with --cassette FILE",
            )
        provider = self._provider(of_types=of_types)
        with (
            self._cassette(),
            self._answering(provider) as answers,
            self._journal(answers) as journal,
        ):
            if progress:
                progress.batches = lambda: getattr(answers, "batches", 0)
            yield TurnSettings(
                answers,
                model=self._model,
                budget=Budget(self.budget),
                jobs=self.jobs,
                progress=progress.page if progress else None,
                watch=progress.watch if progress else None,
                ready=_ready(provider, of_types=of_types),
                journal=journal,
                pending=Pending(self.project.root, self.pending) if self.pending else None,
                keeps_template=self.keeps_template,
                prices=None if self._replays else self.project.settings.price.get,
            )

    def _journal(self, answers: Provider) -> "AbstractContextManager[ReplyJournal | None]":
        """Return the journal of the project's replies; there is none where nothing is paid."""
        if self.cassette is not None or isinstance(answers, TemplateProvider):
            return nullcontext()
        from pytest_regen.turns.replies import ReplyJournal

        return ReplyJournal.open(self.project.root)

    @contextmanager
    def _answering(self, provider: Provider | None) -> Iterator[Provider]:
        """Yield who answers; where that is a batch, it outlives the command."""
        if provider is not None or not self.is_batch:
            yield provider or AnthropicProvider(self._model)
            return
        from pytest_regen.turns import BatchProvider

        folder = self.project.root / ".regen" / "batches"
        batches = BatchProvider(self._model, folder=folder, tell=say)
        try:
            yield batches
        except KeyboardInterrupt:
            if batches.batches:
                say(
                    f"batches under way at the API: {batches.batches}; none is cancelled, and the "
                    "same command picks them up"
                )
            raise
        finally:
            # Replies that could not be stored are there for the next run.
            batches.stop()

    def _provider(self, *, of_types: bool) -> Provider | None:
        """Return the provider that is named, in the command or in the table; ``None``: the API."""
        name = self._who
        if name is None or (name == TEMPLATE and not (of_types and self.by_template)):
            return None
        if name.startswith("anthropic:"):
            return None  # The API, and the model is known.
        if self.provider:
            return load_provider(name)
        return load_provider(name, folder=self.project.root, option=TABLE_PROVIDER)

    @property
    def _who(self) -> str | None:
        """The name of who answers, as the command or the table says; ``None``: the API."""
        return effective_provider(self.provider, self.project.settings.provider, self.model)

    def _refuse_contradictions(self, *, of_types: bool) -> None:
        if self.is_batch:
            self._refuse_without_api()
        named = named_model(self.provider)
        if named and self.model not in {None, named}:
            raise UsageError(
                f"--provider {self.provider} and --model {self.model} contradict each other",
                why="each of them names the model that is asked",
                hint="leave --model out",
            )
        if self.provider != TEMPLATE:
            return
        if not of_types:
            raise no_template("units of a kind")
        for option, value in (("--model", self.model), ("--cassette", self.cassette)):
            if value is not None:
                raise UsageError(
                    f"--provider template and {option} {value} contradict each other",
                    why="the template asks no model, so there is nothing to record or replay",
                    hint=f"leave one of them out; {option} is for turns with a model",
                )

    def _refuse_without_api(self) -> None:
        """Check that nothing stands against a batch at the API."""
        table = self.project.settings.provider
        is_api = (self._who or "anthropic:").startswith("anthropic:")
        for is_set, what, why in (
            (
                self.provider is not None and not is_api,
                f"--provider {self.provider}",
                "batches are the API's; another provider has none",
            ),
            (
                self.provider is None and not is_api and table != TEMPLATE,
                f"provider = {table!r} in [tool.pytest-regen]",
                "batches are the API's; another provider has none",
            ),
            (
                self.record is not RecordChoice.NONE,
                f"--record {self.record}",
                "a recording holds requests and their answers; a batch has its answers elsewhere",
            ),
        ):
            if is_set:
                raise UsageError(
                    f"--engine batch and {what} contradict each other",
                    why=why,
                    hint="leave one of them out",
                )

    @property
    def _replays(self) -> bool:
        """Whether all answers come from a recording, which was paid for when it was made."""
        if self.cassette is None or self.record is RecordChoice.NONE:
            return self.cassette is not None
        return self.record is RecordChoice.ONCE and self.cassette.is_file()

    @property
    def _model(self) -> str | None:
        return named_model(self._who) or self.model or self.project.model

    @contextmanager
    def _cassette(self) -> Iterator[None]:
        if self.cassette is None:
            yield
            return
        from pytest_regen.cassettes import use_cassette

        mode = "new_episodes" if self.cassette.is_file() else "once"
        service = (split_provider(self._who) or ("anthropic", ""))[0]
        key = KEY_VARIABLES.get(service)
        again = f"the same command with --record {mode}" + (f" and {key} set" if key else "")
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


def _ready(provider: Provider | None, *, of_types: bool) -> Callable[[], None] | None:
    """Return what checks, before anything is begun, that turns can be taken."""
    if provider is None:
        return _require_key_for_types if of_types else require_api_key
    check: Callable[[], None] | None = getattr(provider, "require_key", None)
    return check


def _require_key_for_types() -> None:
    """Check as ``require_api_key`` does, and name what needs no key.

    Raises:
        MissingKeyError: no key is set, and no cassette in use replays without one.
    """
    try:
        require_api_key()
    except MissingKeyError as error:
        raise MissingKeyError(
            error.what,
            why=error.why,
            hint="add --provider template, which writes types without a model, free of charge; or "
            f"to ask a model, {error.hint}",
        ) from None
