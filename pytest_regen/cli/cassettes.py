"""``cassettes check``, ``show`` and ``convert``: recordings looked at without running a test."""

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from pytest_regen.cassettes.files.reader import read_cassette
from pytest_regen.cassettes.upkeep import check as checking
from pytest_regen.cassettes.upkeep import convert as conversions
from pytest_regen.cassettes.upkeep.show import conversation
from pytest_regen.cli.output import AsJson, console, emit_json, emit_text, next_step, say
from pytest_regen.cli.project import Project, short_path
from pytest_regen.errors import CassetteError, CassetteUnreadableError, UsageError
from pytest_regen.github import Finding, annotate
from pytest_regen.strict_json import json_or_none
from pytest_regen.text import plural, shorten

cassettes = typer.Typer(
    name="cassettes",
    help="Check, show and convert recordings.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Cassettes, or folders.")]

_DRIFTED = Path(".pytest_cache/v/regen/drifted")
_WARNINGS = ("DRIFT", "EMPTY", "FOREIGN", "HEADER", "OVERSIZE", "PARTIAL", "STALE", "UNUSED")
_EXCERPT = 600
_SECONDS = 10.0
"""Between two lines on how far a check is, where no terminal draws them over."""


@cassettes.command()
def check(
    paths: Paths,
    max_age: Annotated[
        int | None, Option("--max-age", min=0, help="Days after which one is stale.")
    ] = None,
    max_size: Annotated[
        int, Option("--max-size", min=1, help="Kilobytes over which one is oversize.")
    ] = 1_000,
    baseline: Annotated[
        Path | None, Option("--baseline", metavar="FILE", help="Findings that were looked at.")
    ] = None,
    update: Annotated[
        bool, Option("--update-baseline", help="Put all secrets and headers into the baseline.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        Option("--fail-on", metavar="CODE", help="A warning that is an error; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find secrets, damage, edits, and cassettes that are unused, stale, oversize or drifting."""
    project, as_errors = Project.here(), {code.upper() for code in fail_on or ()}
    if unknown := as_errors.difference(_WARNINGS):
        raise UsageError(
            f"--fail-on {min(unknown)}: there is no such warning",
            hint=f"use one of {', '.join(_WARNINGS)}",
        )
    files, skipped = checking.cassettes_in(paths)
    accepted = _baseline(project, baseline, update=update)
    found = checking.check_cassettes(
        _with_progress(files),
        days=max_age,
        kilobytes=max_size,
        drifted=_last_drifted(),
        baseline=accepted,
    )
    findings = [
        replace(finding, severity="error") if finding.code in as_errors else finding
        for finding in found
    ]
    if accepted and update:
        say(f"{accepted.path}: {plural(accepted.write(files), 'finding')}")
    errors = [finding for finding in findings if finding.severity == "error"]
    # Once each, because a key is found again in every request that carried it.
    leaking = list(dict.fromkeys(f.path for f in findings if f.code in {"SECRET", "HEADER"}))
    stale = [finding.path for finding in findings if finding.code == "STALE"]
    unused = [str(finding.path) for finding in findings if finding.code == "UNUSED"]
    warnings = plural(len(findings) - len(errors), "warning")
    counts = f"{plural(len(errors), 'error')}, {warnings}"
    if as_json:
        emit_json(
            {
                "checked": len(files),
                "skipped": [str(path) for path in skipped],
                "ok": not errors,
                "findings": [{**asdict(f), "path": str(f.path)} for f in findings],
            }
        )
    else:
        for finding in findings:
            say(str(finding))
        if skipped:
            say(f"skipped, because they hold no interactions: {shorten(list(map(str, skipped)))}")
        say(f"{len(files)} checked, {counts}")
        is_cleanable = False
        with suppress(CassetteError):  # because the file may be what nothing can convert
            is_cleanable = bool(leaking and conversions.plan_conversion(leaking[0]).text)
        if is_cleanable:
            command = f"pytest-regen cassettes convert {shlex.quote(str(leaking[0]))}"
            next_step(command, "revoke what was in it")
        elif leaking:
            next_step(f"revoke what is in {leaking[0]}, and record it again without")
        elif stale:
            # Deleted first, because a recording of a healed unit is asked for by no test's name.
            command = f"rm {shlex.quote(str(stale[0]))} && pytest --regen-record once"
            next_step(command, "records it anew; with --regen as well where a unit was healed")
        elif unused:
            # Not done here, because a test that is renamed may take its file along.
            next_step(shlex.join(["rm", *unused]), "no test of this name plays these recordings")
    annotate(
        project.settings.annotations or "auto",
        (
            Finding(f.severity, f.path.as_posix(), f.code, f.message, f.path, f.line)
            for f in findings
        ),
    )
    # Worse than any finding, because nobody can say what is in it.
    is_unreadable = any(finding.code == "UNREADABLE" for finding in findings)
    raise typer.Exit(2 if is_unreadable else int(bool(errors)))


def _with_progress(files: Sequence[Path]) -> Iterator[Path]:
    """Yield the files, and say on stderr how many are checked."""
    if sys.stderr.isatty():
        from rich.progress import track

        yield from track(files, "checking", console=console(), transient=True)
        return
    told_at = time.monotonic()
    for number, path in enumerate(files):
        if time.monotonic() - told_at >= _SECONDS:
            told_at = time.monotonic()
            say(f"{number:,} of {len(files):,} checked")
        yield path


def _baseline(project: Project, path: Path | None, *, update: bool) -> checking.Baseline | None:
    """Return the baseline of the option, else of the project, if there is one.

    Raises:
        UsageError: ``--update-baseline`` without a baseline, or the file is not one.
    """
    configured = project.settings.cassettes.baseline
    if path is None and configured:
        path = short_path(project.root / configured)
    if path is None and update:
        raise UsageError(
            "--update-baseline: no baseline is named",
            hint='add --baseline FILE, or baseline = "FILE" to [tool.pytest-regen.cassettes]',
        )
    return checking.Baseline(path, takes_all=update) if path else None


def _last_drifted() -> frozenset[str]:
    """Return the cassettes that drifted in the last test run, from the working folder."""
    folder = Path.cwd()
    # Looked for above, because pytest keeps its cache in the root, which -c or an argument may set.
    parents = (folder, *folder.parents)
    root = next((f for f in parents if (f / _DRIFTED).is_file()), folder)
    path = root / _DRIFTED
    data = json_or_none(path.read_bytes()) if path.is_file() else None
    # Anything else is none of ours, because who clears or copies a cache may leave half of it.
    names = data if isinstance(data, list) else []
    return frozenset(os.path.relpath(root / str(name)) for name in names)


@cassettes.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A cassette.")],
    full: Annotated[bool, Option("--full", help="Print long texts whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a cassette as a conversation, with tokens and what the prompt cache did."""
    cassette = read_cassette(file)
    if cassette is None:
        raise UsageError(f"{file} is not there", hint="name a cassette")
    try:
        talk = conversation(cassette)
    # An error of the file and no bug, because a body from outside may be nested at will.
    except RecursionError:
        raise CassetteError(
            f"{file} cannot be shown: a message in it is nested too deep",
            hint="read the file itself",
        ) from None
    if as_json:
        emit_json(talk)
        return
    metadata = talk["metadata"]
    facts = [f"{name}: {metadata[name]}" for name in ("recorded_at", "source") if name in metadata]
    emit_text(f"{file}  {', '.join(facts)}".rstrip())
    length = None if full else _EXCERPT
    for interaction in talk["interactions"]:
        place = f"{interaction['number']} (line {interaction['line']})"
        request = f"{interaction['method']} {interaction['path']} {interaction['status']}"
        model = f", {interaction['model']}" if interaction["model"] else ""
        emit_text(f"\n--- {place}: {request}{model}")
        if interaction["repeated"]:
            emit_text(f"    ({interaction['repeated']} messages as before)")
        for message in interaction["new"]:
            emit_text(f"{message['role']}: {_excerpt(message['text'], length)}")
        emit_text(f"reply: {_excerpt(interaction['reply'], length)}")
        tokens = ", ".join(f"{number:,} {name}" for name, number in interaction["tokens"].items())
        end = "" if interaction["end"] == "complete" else f", stream {interaction['end']}"
        if tokens or interaction["stop_reason"]:
            emit_text(f"    {interaction['stop_reason']}{end}; tokens: {tokens or 'unknown'}")


def _excerpt(text: str, length: int | None) -> str:
    if length is None or len(text) <= length:
        return text
    return f"{text[:length]}… ({len(text) - length:,} more characters)"


@cassettes.command()
def convert(
    paths: Paths,
    out: Annotated[
        Path | None, Option("--out", help="Where to write; by default the same file.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would change, write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite cassettes: answers decompressed, credentials gone, and all still found by vcrpy."""
    files, _ = checking.cassettes_in(paths)
    if out is not None and len(files) > 1:
        raise UsageError(
            f"--out {out} is one file, and {len(files)} are to be converted",
            hint="name one cassette, or leave --out away: each is replaced",
        )
    rows: list[dict[str, Any]] = []
    for path in files:
        try:
            # Planned whole, because a recording is replaced or left alone, never half.
            plan = conversions.plan_conversion(path, out)
            status = ("convertible" if dry_run else "converted") if plan.text else "unchanged"
            if status == "converted":
                conversions.convert(plan)
            written = plan.target if status == "converted" else path
            what = "would be converted" if status == "convertible" else status
            say(f"{written}: {what}, {plural(plan.recordings, 'recording')}: {plan}")
            row = {
                "written": str(written) if status == "converted" else None,
                "interactions": plan.recordings,
                "changes": {"headers": plan.headers, "replaced": plan.replaced},
            }
        except CassetteError as error:
            # Of many files the others are converted all the same, because each stands alone.
            status = "unreadable" if isinstance(error, CassetteUnreadableError) else "refused"
            why = f"{error.what}: {error.why}" if error.why else error.what
            say(f"{path}: {status}: {why}\n  next: {error.hint}")
            row = {"why": why, "next": error.hint}
        rows.append({"path": str(path), "status": status, **row})
    statuses = Counter(row["status"] for row in rows)
    if as_json:
        emit_json({"ok": not {"refused", "unreadable"} & statuses.keys(), "files": rows})
    elif len(rows) > 1:
        say(", ".join(f"{number} {status}" for status, number in statuses.items()))
    raise typer.Exit(2 if "unreadable" in statuses else int("refused" in statuses))
