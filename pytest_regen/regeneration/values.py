"""What regenerating asks for and gives back, as values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_regen.errors import RegenError
from pytest_regen.turns.budget import Budget, TokenBudget
from pytest_regen.turns.values import Provider, Reply, TurnRequest, Usage
from pytest_regen.validation.issues import Feedback, Issue

if TYPE_CHECKING:
    from pytest_regen.turns.models import Prices
    from pytest_regen.turns.replies import ReplyJournal


StopReason = Literal[
    "clean",
    "attempts",
    "no_progress",
    "unfixable",
    "refused",
    "budget",
    "transport",
    "cassette_miss",
]
"""Why the work on a piece ended."""


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is that works on several places at once; a value, made anew at each change."""

    places_done: int = 0
    """Places that are finished, those that ended with an error included."""
    places_total: int | None = None
    """Places of the run; ``None`` where that is not known yet."""
    pages_done: int = 0
    """Pages that have an answer, without asking too."""
    pages_known: int = 0
    """Pages that the places begun so far want: those done, failed, in flight and waiting."""
    pages_failed: int = 0
    """Pages that were asked for and got no answer; those that were not sent are not among them."""
    in_flight: int = 0
    """Pages that are being asked at this moment."""
    calls: int = 0
    """Requests made for the pages that ended."""
    usage: Usage = field(default_factory=Usage)
    """What these took."""
    waiting: int = 0
    """Turns that wait for that limit."""
    elapsed: float = 0.0
    """Seconds since the run began."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """With what, and within which limits, pages are asked."""

    provider: Provider
    model: str | None = None
    """Overrides the model that a page was made with."""
    max_tokens: int | None = None
    """Limit of the first reply; a truncated one is asked again with more."""
    budget: TokenBudget = field(default_factory=Budget)
    """What all calls are paid from; see ``TokenBudget`` for one that machines share."""
    jobs: int = 1
    """Pages asked at the same time."""
    before_turn: Callable[[TurnRequest], None] | None = None
    """Called with each request before it is sent, in the thread of the event loop that asks: never
    twice at the same time, with the context variables of the caller. What it raises ends the work.
    """
    after_turn: Callable[[TurnRequest, Reply], None] | None = None
    """Called with each request and its reply, in the same thread."""
    ready: Callable[[], None] | None = None
    """Called before a store is begun whose pages are to be asked; raises what would stop the first
    of them, a missing key for one."""
    journal: "ReplyJournal | None" = None
    """Keeps replies from when they arrive until their pages are stored, so that a kill in between
    loses none."""
    watch: Callable[[RunState], None] | None = None
    """Called whenever the state of the run changes, in the caller's thread or the event loop's."""
    pending: "Pending | None" = None
    """Where outputs wait for review that would be kept; ``None`` where they are stored."""
    keeps_template: bool = False
    """Whether the template writes again what it wrote: nobody said who is to answer instead."""
    prices: "Prices | None" = None
    """Those of the project, before list prices."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Outputs that would be kept are not stored, but wait in ``.regen/pending`` for review."""

    root: Path
    """The project, as ``.regen`` stands in it."""
    asked_by: str
    """The test item, or the command."""
    answers: dict[Path, dict[tuple[str, int], "Answer"]] = field(default_factory=dict)
    """What waits of this item or command, by place, then by piece and page: what is asked next
    builds on it."""


@dataclass(frozen=True, slots=True)
class Known:
    """An output that is there without asking."""

    output: str
    model: str
    """Who wrote it."""
    provider: str | None = None
    stop_reason: str = ""
    generated_at: str | None = None
    """When, where that was before."""
    shared_from: str | None = None
    """Folder of the store that it was asked for."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One page to ask for."""

    name: str
    """The piece it belongs to: a type, a unit."""
    page: int
    """Counts from 1; a unit has one page."""
    request: TurnRequest
    """With the corrections in it."""
    output_tokens: int
    """About how many the reply takes, for the budget."""
    title: str
    """What a refusal names: ``Order, page 1 of 2``."""
    extract: Callable[[Sequence[str]], str]
    """Returns the output in a reply, which may have come in several pieces."""
    entry: Any = None
    """What the place wants to know again when the answer is there."""
    prompt_file: str = ""
    """Where its prompt is stored; empty where code makes it."""
    template: Callable[[], str] | None = None
    """Returns the output without a model; ``None`` where only a model can write it."""
    known: Known | None = None
    """The answer, where no model has to be asked."""
    provider: Provider | None = None
    """Who is asked in place of the provider of the settings: one with a recording of its own."""
    claim: Callable[[], "Known | Literal['wait', 'ask']"] | None = None
    """Looked at before it is sent: another place may have the answer, or is asking for it now."""
    correction: str = ""
    """What was put before the prompt; a part of the request."""
    stored: str | None = None
    """The output that is stored for this very request. A reply of an earlier run that gives it was
    stored before that run was killed, and is no new answer."""


# Compared by identity, because a run looks for each answer among thousands.
@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What came back for one page."""

    ask: Ask
    output: str = ""
    """As extracted from the reply, once it is read."""
    pieces: tuple[str, ...] = ()
    """The reply as it came, and its continuations; none where no model was asked."""
    stop_reason: str = ""
    model: str = ""
    provider: str | None = None
    """Who was asked, as ``module:name``; ``None`` where that was the Messages API."""
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    """Requests made for this answer, larger limits and continuations included."""
    requests: tuple[TurnRequest, ...] = ()
    """Those that got a reply, now or by an earlier run; for the journal of replies."""
    failure: RegenError | None = None
    """Why there is no output."""
    fatal: BaseException | None = None
    """What is to end all work: a fault of the program, or an interruption."""
    by_template: bool = False
    """Whether no model was asked at all."""


Rejected = Mapping[Answer, Sequence[Issue]]
"""Outputs that are not kept, each with what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One text that was asked for and put to the test, for whoever wants to read along."""

    answer: Answer
    is_kept: bool
    findings: tuple[Feedback, ...]
    """What is wrong with it, and what the asking test said to it; nothing where it failed."""


@dataclass(slots=True)
class HealResult:
    """How the work on one unit ended."""

    name: str
    stop_reason: StopReason | None
    """``None`` where nothing was tried, see ``skipped``."""
    attempts: int = 0
    """Rounds of regeneration made."""
    allowed: int = 0
    """Rounds that there could have been: answers for each page."""
    calls: int = 0
    """Requests made, truncated ones and continuations included."""
    regenerated: tuple[tuple[str, int], ...] = ()
    """(name, page) pairs whose new output is now the stored one."""
    rejected: tuple[str, ...] = ()
    """History ids of outputs that were not better."""
    usage: Usage = field(default_factory=Usage)
    issues_before: tuple[Issue, ...] = ()
    issues_after: tuple[Issue, ...] = ()
    changed_paths: tuple[Path, ...] = ()
    diff: str = ""
    """Unified diff of the file, empty where it did not change, or several were worked on."""
    failure: RegenError | None = None
    """What ended the work, where that was no finding."""
    skipped: str = ""
    """Why nothing was tried: it was edited by hand, say."""
    pending: tuple[str, ...] = ()
    """The id of the candidate that waits for review. Then nothing is regenerated, ``issues_after``
    and ``stop_reason`` speak of the candidate, and ``diff`` is what accepting it would change."""
    emulated: bool = False
    """Whether the replies came from the emulator."""
    by_template: bool = False
    """Whether the new outputs are those of the template, so that no model was asked."""
    transcript: tuple[Attempt, ...] = ()
    """What was asked and what came back, in order; nothing of first drafts and of the template."""
