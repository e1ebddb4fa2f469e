"""Everything pytest-regen raises on purpose.

RegenError
├── UsageError                    an option, argument, ini value or marker is wrong
│   ├── UnknownOperationError     the document has no such operation
│   ├── UnknownTypeError          the store has no such type
│   ├── UnknownPageError          the type has no such page
│   ├── NoTemplateError           only a model can write this
│   └── MissingExtraError         a package of an extra is not installed (also an ImportError)
├── KindError                     a method of a kind raised
├── DocumentError                 the API description cannot serve
│   ├── DocumentUnreadableError   missing, empty, not JSON or YAML, not OpenAPI
│   ├── NoInstanceError           no JSON value can be drawn of a schema
│   └── DocumentDefectError       readable, but this operation cannot be generated from it
│       └── NothingToGenerateError  its answer is sound, and holds no type to generate
├── SourceError                   generated source cannot be taken apart or put together
│   ├── BoundaryError             boundary lines do not pair up, or two blocks share a name
│   ├── RegionError               the units of a file cannot be found, or a text cannot stand there
│   └── MissingBlockError         no boundary block of that name (also a ValueError)
├── StoreError                    a store's folder cannot serve
│   ├── StoreMissingError         no store at that path
│   ├── StoreCorruptError         an artifact does not hold together
│   ├── StoreWriteError           the folder cannot be written
│   ├── HandEditError             a write would discard an edit made by hand
│   ├── EditedPromptError         a prompt was edited, and is not asked with
│   └── StaleStoreError           stored prompts were made from another IR
├── ReviewError                   a candidate that waits for review cannot be accepted
│   ├── OutdatedCandidateError    what it was to replace, or was made from, has changed since
│   └── WorseCandidateError       errors would rise
├── ContextError                  a conversation cannot be rebuilt from what the caller sent
│   ├── InvalidContextError       malformed, too large (also a ValueError)
│   └── SealError                 nothing vouches for this context
│       ├── SealMissingError      a seal is required and none was sent
│       ├── SealTamperedError     the seal or what it was put on was changed
│       ├── SealMovedError        the seal belongs to another conversation
│       ├── SealExpiredError      the seal is too old
│       └── SealKeyError          the seal was made with a key that is not ours
├── ProviderError                 no usable reply
│   ├── MissingKeyError           no credential for a live call
│   ├── RejectedRequestError      the API refused the request itself (400, 401, 403, 404, 413, 422)
│   ├── TransportError            the model could not be reached, or the stream was cut
│   ├── RefusedError              the model declined to answer
│   └── ReplyFormatError          the reply holds no JSON that fits the schema (also a ValueError)
│       └── ReaskedError          the model asks again where it has to write
├── BudgetError                   the token budget or the number of turns is spent
├── NoProgressError               the next turn could only repeat the last
├── SandboxError                  code that a model wrote cannot be run here
└── CassetteError                 a recording cannot serve
    ├── CassetteMissError         the cassette has no answer to this request
    └── CassetteUnreadableError   the file is no cassette

Imports nothing of the package at run time, so that any module may import it.
"""

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pytest_regen.turns.values import Usage


class RegenError(Exception):
    """Base class of the errors a caller may want to catch.

    Args:
        what: what happened, in one sentence that shows the offending value.
        why: the reason, where ``what`` does not already give it.
        hint: what to do next: a command to run or an edit to make.
        facts: values of the attributes that the class declares.
    """

    exit_code: ClassVar[int] = 2
    """Exit code of the command line when this error ends it (docs/commands.md)."""

    def __init__(self, what: str, *, why: str = "", hint: str, **facts: Any) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        for name, value in facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why:  {self.why}")
        lines.append(f"  next: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default protocol; process pools need them.
        return _rebuild, (type(self), self.args), dict(self.__dict__)


def _rebuild(cls: type[RegenError], args: tuple[object, ...]) -> RegenError:
    return cls.__new__(cls, *args)


class UsageError(RegenError):
    """An option, argument, ini value or marker argument is wrong."""


class UnknownOperationError(UsageError):
    """The document has no such operation; the hint lists near matches."""


class UnknownSchemaError(UsageError):
    """The document has no schema of that name; the hint lists near matches."""


class UnknownTypeError(UsageError):
    """The store has no such type; the hint lists those it has."""


class UnknownPageError(UsageError):
    """The type has no such page; the hint lists those it has."""


class NoTemplateError(UsageError):
    """The provider ``template`` is chosen, and what it is asked for only a model can write."""


class MissingExtraError(UsageError, ImportError):
    """A package of an extra is not installed, or too old; the hint is the line that installs it."""

    extra: str
    """The name of the extra."""


class KindError(RegenError):
    """A method of a kind raised: the kind has to be corrected, no reply can help."""

    trace: str
    """The traceback, from the code of the kind on."""


class DocumentError(RegenError):
    """The API description cannot serve."""


class DocumentUnreadableError(DocumentError):
    """The file is missing, empty, neither JSON nor YAML, or no OpenAPI document."""


class DocumentDefectError(DocumentError):
    """The document was read, but the operation cannot be generated from it."""


class NothingToGenerateError(DocumentDefectError):
    """The part of the document has no JSON schema, or one of plain values only."""


class NoInstanceError(DocumentError):
    """No JSON value can be drawn of a schema: it allows none, or cannot be read."""


class SourceError(RegenError):
    """Generated source cannot be taken apart or put together."""


class BoundaryError(SourceError):
    """Boundary lines do not pair up, or two blocks share a name."""

    problem: str
    """``unclosed``, ``unopened``, ``nested`` or ``duplicate``."""
    line: int
    """Of the boundary at fault, counted from 1."""
    name: str
    """The type that this boundary names."""


class RegionError(SourceError):
    """The units of a file cannot be told apart, or a text cannot stand among them."""

    line: int = 0
    """Of the file, counted from 1; 0 if no line is to blame."""


class MissingBlockError(SourceError, ValueError):
    """The source has no boundary block of that name."""


class StoreError(RegenError):
    """A store's folder cannot serve."""


class StoreMissingError(StoreError):
    """There is no store at that path."""


class StoreCorruptError(StoreError):
    """An artifact is unreadable, or the artifacts contradict one another."""


class StoreWriteError(StoreError):
    """The folder cannot be written: read-only, full, or taken by another writer.

    Attributes:
        unkept: what was paid for and could not be kept: the ``LoopReport`` of a run, the
            ``ScenarioGenerationResult`` of a generation; ``None`` elsewhere.
    """

    unkept: object = None


class HandEditError(StoreError):
    """A write would discard an edit made by hand (issue code DRIFT)."""


class EditedPromptError(StoreError):
    """A page would be asked with a prompt that was edited (issue code EDITED_PROMPT)."""


class StaleStoreError(StoreError):
    """The stored prompts were made from another IR than the one at hand."""


class ReviewError(RegenError):
    """A candidate that waits for review cannot be accepted."""


class OutdatedCandidateError(ReviewError):
    """What a candidate was to replace, or was made from, has changed since."""


class WorseCandidateError(ReviewError):
    """With the candidate in place there would be more errors."""


class ContextError(RegenError):
    """A conversation cannot be rebuilt from what the caller sent."""

    code: ClassVar[str] = "INVALID_CONTEXT"
    """Stable name of the error on the wire."""


class InvalidContextError(ContextError, ValueError):
    """What the caller sent is malformed, too large, or answers questions that were never asked."""

    problems: tuple[tuple[str, str], ...] = ()
    """Pairs of the place, ``answers.location.text``, and what is wrong there."""


class SealError(ContextError):
    """Nothing vouches for this context."""

    code = "CONTEXT_TAMPERED"


class SealMissingError(SealError):
    """A seal is required and none was sent."""

    code = "CONTEXT_UNSEALED"


class SealTamperedError(SealError):
    """The seal, or what it was put on, was changed."""


class SealMovedError(SealError):
    """The seal belongs to another conversation."""

    code = "CONTEXT_MOVED"


class SealExpiredError(SealError):
    """The seal is too old."""

    code = "CONTEXT_EXPIRED"


class SealKeyError(SealError):
    """The seal was made with a key that is not, or no longer, ours."""

    code = "CONTEXT_FOREIGN_KEY"


class ProviderError(RegenError):
    """The provider gave no usable reply."""

    exit_code = 3
    usage: "Usage | None" = None
    """Tokens the call took all the same, where that is known: a stream that broke off."""
    is_alone: bool = False
    """Whether other requests were answered: what failed with this one says nothing about them."""


class MissingKeyError(ProviderError):
    """A live call was asked for and no credential is set."""

    variable: str = "ANTHROPIC_API_KEY"
    """The environment variable that would hold it."""


class RejectedRequestError(ProviderError):
    """The API refused the request itself; sending it again cannot help."""

    status: int
    """Of the HTTP response."""


class TransportError(ProviderError):
    """The model could not be reached, timed out, is overloaded, or its stream was cut."""


class RefusedError(ProviderError):
    """The model declined to answer."""


class ReplyFormatError(ProviderError, ValueError):
    """The reply holds no JSON value that fits the schema."""

    text: str
    """The reply."""
    problem: str
    """What is wrong with it, in words that go back to the model."""
    asks: str = ""
    """What the model is to send instead; by default the whole value, corrected."""
    is_truncated: bool = False
    """Whether the reply ended at a limit, so that the same request cannot succeed."""


class ReaskedError(ReplyFormatError):
    """The model asks again where it has to write."""


class BudgetError(RegenError):
    """The token budget or the number of turns is spent; the next call was not made."""

    exit_code = 1
    needed: int = 0
    """Tokens with which that call would have been made, where tokens ran out."""


class NoProgressError(RegenError):
    """The next turn could only repeat the last; it was not made."""

    exit_code = 1


class SandboxError(RegenError):
    """Code that a model wrote cannot be run here: nothing limits it, or a program is missing."""


class CassetteError(RegenError):
    """A recording cannot serve."""

    exit_code = 3


class CassetteMissError(CassetteError):
    """The cassette has no answer to this request."""

    recorded_with: str = ""
    """The provider, as ``ollama:MODEL``, whose answer to the same words is in the cassette."""
    causes: tuple[str, ...] = ()
    """What it has in common with other misses (``$.tool_choice is new``)."""


class CassetteUnreadableError(CassetteError):
    """The file is no cassette, or one that must not be loaded."""

    exit_code = 2
    line: int | None = None
    """Of the file, counted from 1, where one is to blame."""
    is_edited: bool = False
    """Whether all that is wrong is that a recorded request was changed by hand."""
