"""``generate``: stores from an API description."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pytest_regen.cli.options import (
    AsJson,
    Attempts,
    BudgetTokens,
    CassetteFile,
    DryRun,
    Jobs,
    Model,
    ProviderName,
    Record,
    RecordChoice,
    TurnOptions,
)
from pytest_regen.cli.output import (
    describe_failure,
    emit_json,
    progress_bar,
    say,
    show_issues,
    usage_line,
)
from pytest_regen.documents import Document, Operation, read_document
from pytest_regen.errors import DocumentDefectError, RegenError, UsageError
from pytest_regen.prompts import estimated_input_tokens
from pytest_regen.regeneration import GenerateResult, generate_store

__all__ = ["generate"]


def generate(
    spec: Annotated[Path, typer.Argument(help="OpenAPI or Swagger document, JSON or YAML.")],
    operation: Annotated[
        str | None, typer.Argument(help='Method and path, for example "GET /v1/projects".')
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder that holds a folder per operation.")
    ] = Path("generated"),
    every: Annotated[
        bool, typer.Option("--all", help="Every operation with a JSON response.")
    ] = False,
    tag: Annotated[str | None, typer.Option("--tag", help="Every operation with this tag.")] = None,
    language: Annotated[str, typer.Option("--language", help="Target language.")] = "csharp",
    status: Annotated[
        str | None, typer.Option("--status", help="Response to read, exactly.")
    ] = None,
    fields_per_page: Annotated[
        int | None, typer.Option("--fields-per-page", min=1, help="Instead of a token target.")
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Of the source.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="default or xchange.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Ask every page again.")] = False,
    discard_edits: Annotated[
        bool, typer.Option("--discard-edits", help="Rebuild changed types edited by hand.")
    ] = False,
    model: Model = None,
    attempts: Attempts = None,
    jobs: Jobs = 1,
    budget: BudgetTokens = None,
    cassette: CassetteFile = None,
    record: Record = RecordChoice.NONE,
    provider: ProviderName = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Generate the types of an operation's response, or update those that are there."""
    document = read_document(spec)
    operations = _operations(document, operation, tag, every=every)
    turns = TurnOptions(model, attempts, budget, jobs, cassette, record, provider)
    plan = {
        "language": language,
        "status": status,
        "fields_per_page": fields_per_page,
        "namespace": namespace,
        "profile": profile,
        "force": force,
    }
    many = every or tag is not None
    if dry_run:
        results = _each(document, operations, out, {**plan, "dry_run": True}, many=many)
    else:
        with progress_bar("generating") as tell, turns.turns(tell) as settings:
            work = {
                **plan,
                "settings": settings,
                "attempts": turns.replies(),
                "discard_edits": discard_edits,
            }
            results = _each(document, operations, out, work, many=many)
    done = [result for result in results if isinstance(result, GenerateResult)]
    if as_json:
        reports = [_planned(r) if dry_run else _generated(r) for r in done]
        emit_json({"stores": reports} if many else reports[0])
    else:
        for result in done:
            _show_plan(result) if dry_run else _show(result)
    raise typer.Exit(max((_exit_code(result) for result in results), default=0))


def _operations(
    document: Document, operation: str | None, tag: str | None, *, every: bool
) -> list[Operation]:
    """Return the operations meant.

    Raises:
        UsageError: none is named, or in two ways, or a tag nobody has.
    """
    if (operation is not None) + (tag is not None) + every != 1:
        raise UsageError(
            "generate takes one operation, --tag or --all",
            hint=f'for example: pytest-regen generate {document.path} "GET /path" --out DIR',
        )
    if operation is not None:
        return [document.find(operation)]
    readable = [found for found in document.operations if _is_answered_in_json(found)]
    if every:
        return readable
    tagged = [found for found in readable if tag in found.tags]
    if not tagged:
        known = sorted({name for found in readable for name in found.tags})
        raise UsageError(
            f"no operation with a JSON response has the tag {tag!r}",
            hint=f"the tags are: {', '.join(known) or 'none at all'}",
        )
    return tagged


def _is_answered_in_json(operation: Operation) -> bool:
    """Return whether a success of the operation has a JSON schema."""
    return any(status.startswith("2") or status == "default" for status in operation.json_statuses)


def _each(
    document: Document,
    operations: list[Operation],
    out: Path,
    work: dict[str, Any],
    *,
    many: bool,
) -> list[GenerateResult | RegenError]:
    """Generate one after the other; with many, one that the document does not allow is told."""
    results: list[GenerateResult | RegenError] = []
    for operation in operations:
        try:
            results.append(generate_store(document, operation, out, **work))
        except DocumentDefectError as error:
            if not many:
                raise
            say(f"error: {operation}: {error}")
            results.append(error)
    return results


def _exit_code(result: GenerateResult | RegenError) -> int:
    if isinstance(result, RegenError):
        return result.exit_code
    if result.failures:
        return max(failure.exit_code for failure in result.failures)
    return int(any(found.has_errors for found in result.validation.values()))


def _planned(result: GenerateResult) -> dict[str, Any]:
    return {
        "ir": result.ir.to_json(),
        "prompts": [
            {**entry.to_json(), "estimated_input_tokens": estimated_input_tokens(entry)}
            for entry in result.prompts
        ],
        "defects": [defect.to_json() for defect in result.defects],
    }


def _generated(result: GenerateResult) -> dict[str, Any]:
    return {
        "path": result.path.as_posix(),
        "ok": _exit_code(result) == 0,
        "added": list(result.added),
        "changed": list(result.changed),
        "removed": list(result.removed),
        "kept": list(result.kept),
        "asked": [key._asdict() for key in result.asked],
        "calls": result.calls,
        "tokens": result.usage.total_tokens,
        "stop_reasons": dict(result.stop_reasons),
        "failures": [describe_failure(failure) for failure in result.failures],
        "errors": [i.to_json() for found in result.validation.values() for i in found.errors],
        "defects": [defect.to_json() for defect in result.defects],
    }


def _show_plan(result: GenerateResult) -> None:
    asked = set(result.asked)
    tokens = 0
    for entry in result.prompts:
        if entry.key in asked:
            estimate = estimated_input_tokens(entry)
            tokens += estimate
            say(
                f"  {entry.type_name} page {entry.page} of {entry.total_pages}: "
                f"{len(entry.fields)} fields, about {estimate:,} tokens"
            )
    _show_defects(result)
    say(
        f"{result.path}: {len(asked)} pages to ask, about {tokens:,} tokens of input; "
        "nothing written"
    )


def _show(result: GenerateResult) -> None:
    for name in ("added", "changed", "removed", "kept"):
        types = getattr(result, name)
        if types:
            say(f"  {name}: {', '.join(types)}")
    _show_defects(result)
    source = str(result.path / result.source_file)
    show_issues(result.validation, source)
    for failure in dict.fromkeys(map(str, result.failures)):
        say(f"error: {failure}")
    say(f"{source}: {usage_line(result.calls, result.usage)}")
    if result.failures:
        say("  next: the same command again; what was finished is not asked again")
    elif any(found.has_errors for found in result.validation.values()):
        say(f"  next: pytest-regen regenerate {result.path} --from-errors")


def _show_defects(result: GenerateResult) -> None:
    for defect in result.defects:
        say(f"  document: {defect}")
