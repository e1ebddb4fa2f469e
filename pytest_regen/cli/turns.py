"""How a command's turns with a model are made, from its options and the project's settings."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from pytest_regen import modes
from pytest_regen.cli.output import fact, say, usage_line
from pytest_regen.cli.progress import RunProgress, progress_line_of
from pytest_regen.cli.project import Project
from pytest_regen.errors import MissingKeyError, UsageError
from pytest_regen.regeneration import TurnSettings
from pytest_regen.regeneration.costs import Estimate
from pytest_regen.regeneration.places import Place, View
from pytest_regen.regeneration.values import Pending
from pytest_regen.turns import AnthropicProvider, Budget, cost_of, providers
from pytest_regen.turns.replies import ReplyJournal
from pytest_regen.turns.values import Provider, Usage

_ATTEMPTS = 2


class RecordChoice(StrEnum):
    """Record modes, as vcrpy and pytest-recording word them."""

    NONE = "none"
    ONCE = "once"
    NEW_EPISODES = "new_episodes"
    ALL = "all"
    REWRITE = "rewrite"


class EngineChoice(StrEnum):
    """Which part of the API answers: it does so at once, or in batches."""

    LIVE = "live"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What the command line says about turns with a model."""

    project: Project
    model: Annotated[
        str | None, typer.Option("--model", help="Model to ask instead of the stored one.")
    ] = None
    attempts: Annotated[
        int | None,
        typer.Option("--attempts", min=1, help="Replies per page at most; by default 2."),
    ] = None
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Pages asked at a time.")] = 1
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Tokens to spend at most, in and out.")
    ] = None
    cassette: Annotated[
        Path | None, typer.Option("--cassette", help="Recording to replay from, or to record to.")
    ] = None
    record: Annotated[
        RecordChoice,
        typer.Option(
            "--record", metavar="MODE", show_default=False, help=f"{', '.join(RecordChoice)}."
        ),
    ] = RecordChoice.NONE
    provider: Annotated[
        str | None,
        typer.Option("--provider", help="SERVICE:MODEL, MODULE:ATTR, or template (no model)."),
    ] = None
    engine: Annotated[
        EngineChoice,
        typer.Option(
            "--engine", show_default=False, help="batch takes up to a day, at half the price."
        ),
    ] = EngineChoice.LIVE
    pending: Annotated[
        bool, typer.Option("--pending", help="Store nothing; keep candidates for review.")
    ] = False
    command: str = ""
    """As it was typed: what waits for review says so."""
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
            return self.provider == modes.TEMPLATE
        is_model_named = self.model is not None or self.is_batch
        return not is_model_named and self.project.settings.provider == modes.TEMPLATE

    @property
    def keeps_template(self) -> bool:
        """Whether the template writes again what it wrote: nothing says who is to answer."""
        who = self.provider, self.model, self.cassette, self.project.settings.provider
        return not (self.is_batch or self.corrects or any(who))

    def writes(self, place: Place[Any], view: View, name: str) -> bool:
        """Return whether a unit is written by the template."""
        by_template = place.has_pages and self.by_template
        return by_template or (self.keeps_template and view.is_by_template(name))

    def planning(self) -> TurnSettings:
        """Return the settings of a dry run, which asks nobody."""
        provider = providers.TemplateProvider() if self.by_template else providers.DryRunProvider()
        return TurnSettings(provider, self.model_asked, keeps_template=self.keeps_template)

    def show_cost(self, estimate: Estimate) -> None:
        """Tell about what requests take, where there are any."""
        if estimate.pages:
            fact("cost", estimate.words(is_batch=self.is_batch))

    def price_of(self, usage: Usage, model: str) -> Decimal | None:
        """Return what one request costs in US dollars, not in a batch; ``None`` if unknown."""
        who = self._who
        service = modes.split_provider(who)
        reference = (
            providers.reference_of(*service) if service else None if who == modes.TEMPLATE else who
        )
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
        self, *, places: str = "store", of_types: bool = True, as_json: bool = False
    ) -> Iterator[tuple[RunProgress, TurnSettings]]:
        """Yield how pages are asked, and how far that is, which is shown while the block runs.

        Args:
            places: what it works on, in the singular.
            of_types: whether types of a store are asked for, which the template can write, and no
                units of another kind.
            as_json: whether a program reads the output.

        Raises:
            UsageError: the options contradict each other, or ``--provider`` names no provider.
        """
        if self.provider == modes.TEMPLATE and not of_types:
            raise providers.no_template("units of a kind")
        if self.cassette is None and self.record is not RecordChoice.NONE:
            raise UsageError(
                f"--record {self.record} has nothing to record to",
                hint="name a file with --cassette FILE",
            )
        for option, other, why in self._contradictions():
            what = f"{option} and {other} contradict each other"
            raise UsageError(what, why=why, hint="leave one of them out")
        who, provider = self._who, None
        # Of an API's name only the model is taken; units of a kind have no template.
        is_of_api = who is None or who.startswith("anthropic:")
        if who and not is_of_api and (who != modes.TEMPLATE or (of_types and self.by_template)):
            provider = providers.load_provider(
                who,
                folder=None if self.provider else self.project.root,
                option="--provider" if self.provider else modes.TABLE_PROVIDER,
            )
        is_free = isinstance(provider, providers.TemplateProvider)

        def find_key() -> None:
            try:
                providers.provider_from_environment()
            except MissingKeyError as error:
                if of_types:
                    free = "add --provider template, which writes types without a model"
                    error.hint = f"{free}, free of charge; or to ask a model, {error.hint}"
                raise

        # A recording was paid for when it was made.
        is_once = self.record is RecordChoice.ONCE and self.cassette and self.cassette.is_file()
        is_paid = self.cassette is not None and (is_once or self.record is RecordChoice.NONE)
        with ExitStack() as stack:
            # The line of progress first, because it has to stand until the last reply is stored.
            progress = stack.enter_context(progress_line_of(places, as_json=as_json))
            if self.cassette is not None:
                from pytest_regen.cassettes import use_cassette

                mode = "new_episodes" if self.cassette.is_file() else "once"
                service, _ = modes.split_provider(who) or ("anthropic", "")
                key = providers.KEY_VARIABLES.get(service)
                settings = self.project.settings.cassettes
                recording = use_cassette(
                    self.cassette,
                    mode=self.record.value,
                    record_command=f"the same command with --record {mode}"
                    f"{f' and {key} set' * bool(key)}",
                    keep_headers=settings.keep_headers,
                    drop_headers=settings.drop_headers,
                    passthrough_hosts=settings.passthrough_hosts,
                )
                stack.enter_context(recording)
            answers = stack.enter_context(self._answering(provider))
            journal = None
            if self.cassette is None and not is_free:
                # Because only what is paid for is kept until it is stored.
                journal = stack.enter_context(ReplyJournal.open(self.project.root))
            progress.batches = lambda: getattr(answers, "batches", 0)
            yield (
                progress,
                TurnSettings(
                    answers,
                    model=self.model_asked,
                    budget=Budget(self.budget),
                    jobs=self.jobs,
                    watch=progress.watch,
                    # Before the first request only, because a run that asks nothing needs no key.
                    ready=getattr(provider, "require_key", None) if provider else find_key,
                    journal=journal,
                    pending=Pending(self.project.root, self.command) if self.pending else None,
                    keeps_template=self.keeps_template,
                    prices=None if is_paid else self.project.settings.price.get,
                ),
            )

    @contextmanager
    def _answering(self, provider: Provider | None) -> Iterator[Provider]:
        """Yield who answers; where that is a batch, it outlives the command."""
        if provider is not None or not self.is_batch:
            yield provider or AnthropicProvider(self.model_asked)
            return
        from pytest_regen.turns import BatchProvider

        # Below the project, because a later command has to find them whoever runs it.
        folder = self.project.root / ".regen" / "batches"
        batches = BatchProvider(self.model_asked, folder=folder, tell=say)
        try:
            yield batches
        except KeyboardInterrupt:
            # Only here, because a batch outlives the command only when that is broken off.
            if batches.batches:
                say(
                    f"batches under way at the API: {batches.batches}; none is cancelled, and the "
                    "same command picks them up"
                )
            raise
        finally:
            # Replies that could not be stored are there for the next run.
            batches.stop()

    @property
    def _who(self) -> str | None:
        """The name of who answers, as the command or the table says; ``None``: the API."""
        return modes.effective_provider(self.provider, self.project.settings.provider, self.model)

    def _contradictions(self) -> Iterator[tuple[str, str, str]]:
        """Yield options that exclude each other, and why."""
        table, typed = self.project.settings.provider, f"--provider {self.provider}"
        model = modes.named_model(self.provider)
        if model and self.model not in {None, model}:
            yield typed, f"--model {self.model}", "each of them names the model that is asked"
        if self.provider == modes.TEMPLATE:
            why = "the template asks no model, so there is nothing to record or replay"
            for name, value in {"--model": self.model, "--cassette": self.cassette}.items():
                if value is not None:
                    yield typed, f"{name} {value}", why
        # A batch that is asked for wins over the template of the table.
        is_free = self.provider is None and table == modes.TEMPLATE
        is_of_api = (self._who or "anthropic:").startswith("anthropic:")
        if self.is_batch and not (is_of_api or is_free):
            who = typed if self.provider else f"provider = {table!r} in [tool.pytest-regen]"
            yield "--engine batch", who, "only the Messages API has batches"
        if self.is_batch and self.record is not RecordChoice.NONE:
            why = "a recording holds requests and their answers; a batch has them elsewhere"
            yield "--engine batch", f"--record {self.record}", why

    @property
    def model_asked(self) -> str | None:
        """The model that is asked whoever wrote a unit before; ``None``: the one that wrote it."""
        return modes.named_model(self._who) or self.model or self.project.settings.model


def takes_turns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``TurnOptions`` where its own parameter ``turns`` stands."""
    # As parameters of the command itself, because these are what typer reads.
    own = inspect.signature(command, eval_str=True).parameters
    hints = get_type_hints(TurnOptions, include_extras=True)
    options = [
        inspect.Parameter(item.name, own["turns"].kind, default=item.default, annotation=hint)
        for item in fields(TurnOptions)
        if hasattr(hint := hints[item.name], "__metadata__")
    ]

    @wraps(command)
    def run(**values: Any) -> None:
        turns = {option.name: values.pop(option.name) for option in options}
        command(turns=TurnOptions(Project.here(), **turns), **values)

    names = list(own)
    place = names.index("turns")
    rest = list(own.values())
    parameters = [*rest[:place], *options, *rest[place + 1 :]]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
