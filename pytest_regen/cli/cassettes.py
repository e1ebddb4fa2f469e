"""``cassettes check``, ``show`` and ``convert``: recordings looked at without running a test."""

import json
import os
import shlex
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pytest_regen.cli.output import Advice, AsJson, emit_json, emit_text, next_step, say
from pytest_regen.text import plural

if TYPE_CHECKING:
    from pytest_regen.cassettes.upkeep.check import Baseline, Finding
    from pytest_regen.cassettes.upkeep.convert import Conversion
    from pytest_regen.errors import RegenError

cassettes = typer.Typer(
    name="cassettes",
    help="Check, show and convert recordings.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_DRIFTED = Path(".pytest_cache/v/regen/drifted")
_EXCERPT = 600
_BACKUPS = 1_000
_TRIED = 5
"""Cassettes that are tried before the advice is to record anew."""


@cassettes.command()
def check(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Cassettes, or folders.")],
    max_age: Annotated[
        int | None, typer.Option("--max-age", min=0, help="Days after which one is stale.")
    ] = None,
    max_size: Annotated[
        int, typer.Option("--max-size", min=1, help="Kilobytes over which one is oversize.")
    ] = 1_000,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Findings that were looked at."),
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update-baseline", help="Put all secrets and headers into the baseline."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find secrets, damage, edits, and cassettes that are unused, stale, oversize or drifting."""
    from pytest_regen.cassettes.upkeep.check import Limits, cassettes_in, check_cassettes
    from pytest_regen.cli.progress import progress_line_of
    from pytest_regen.cli.project import Project
    from pytest_regen.github import Finding, tell
    from pytest_regen.regeneration.values import RunState

    files, others = cassettes_in(paths)
    known = _baseline(baseline, update=update)
    checked = findings = 0

    def words() -> str:
        return f"checked {checked:,} of {plural(len(files), 'file')}, {plural(findings, 'finding')}"

    with progress_line_of("checking", words=words, as_json=as_json, is_free=True) as progress:

        def step(*counts: int) -> None:
            nonlocal checked, findings
            checked, findings = counts
            progress.watch(RunState(pages_done=checked, pages_known=len(files)))

        limits = Limits(max_age, max_size)
        found = check_cassettes(files, limits, _last_drifted(), known, step)
    if known and update:
        count = known.write(files)
        say(f"{known.path}: {plural(count, 'finding')}")
    errors = [finding for finding in found if finding.severity == "error"]
    following = _next(found)
    warnings = len(found) - len(errors)
    counts = f"{plural(len(errors), 'error')}, {plural(warnings, 'warning')}"
    if as_json:
        emit_json(
            {
                "checked": len(files),
                "skipped": [str(path) for path in others],
                "ok": not errors,
                "findings": [{**asdict(one), "path": str(one.path)} for one in found],
            }
        )
    else:
        for finding in found:
            say(str(finding))
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            say(f"skipped, because they hold no interactions: {others[0]}{more}")
        say(f"{len(files)} checked, {counts}")
        if following:
            next_step(*following)
    tell(
        Project.here(),
        f"pytest-regen cassettes check: {plural(len(files), 'cassette')}, {counts}",
        (
            Finding(
                "error" if finding.severity == "error" else "warning",
                finding.path.as_posix(),
                finding.code,
                finding.message,
                finding.path,
                finding.line,
            )
            for finding in found
        ),
        following.command if following else "",
    )
    if any(finding.code == "UNREADABLE" for finding in found):
        raise typer.Exit(2)
    raise typer.Exit(1 if errors else 0)


def _baseline(named: Path | None, *, update: bool) -> "Baseline | None":
    """Return the baseline of the option, else of the project, if there is one.

    Raises:
        UsageError: ``--update-baseline`` without a baseline, or the file is not one.
    """
    from pytest_regen.cassettes.upkeep.check import Baseline
    from pytest_regen.cli.project import Project, short_path
    from pytest_regen.errors import UsageError

    if named is None:
        project = Project.here()
        configured = project.settings.cassettes.baseline
        named = short_path(project.root / configured) if configured else None
    if named is None and update:
        raise UsageError(
            "--update-baseline: no baseline is named",
            hint='add --baseline FILE, or baseline = "FILE" to [tool.pytest-regen.cassettes]',
        )
    return Baseline.read(named, takes_all=update) if named else None


def _next(found: "tuple[Finding, ...]") -> Advice | None:
    """Return what to run or do about findings; ``None`` where there is nothing."""
    leaking = list(
        dict.fromkeys(finding.path for finding in found if finding.code in {"SECRET", "HEADER"})
    )
    if leaking:
        from pytest_regen.cassettes.upkeep.convert import is_cleanable

        mendable = next((path for path in leaking[:_TRIED] if is_cleanable(path)), None)
        if mendable:
            return Advice(
                f"pytest-regen cassettes convert {shlex.quote(str(mendable))}",
                "revoke what was in it",
            )
        return Advice(f"revoke what is in {leaking[0]}, and record it again without")
    return None


def _last_drifted() -> frozenset[str]:
    """Return the cassettes that drifted in the last test run, from the working folder.

    That of the project the folder is in: pytest keeps what it knows in its rootdir.
    """
    here = Path.cwd()
    for root in (here, *here.parents):
        file = root / _DRIFTED
        if file.is_file():
            break
    else:
        return frozenset()
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return frozenset()
    known = data if isinstance(data, list) else []
    return frozenset(os.path.relpath(root / str(name), here) for name in known)


@cassettes.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A cassette.")],
    full: Annotated[bool, typer.Option("--full", help="Print long texts whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a cassette as a conversation, with tokens and what the prompt cache did."""
    from pytest_regen.cassettes.files.reader import read_cassette
    from pytest_regen.cassettes.upkeep.show import conversation
    from pytest_regen.errors import UsageError

    read = read_cassette(file)
    if read is None:
        raise UsageError(f"{file} is not there", hint="name a cassette")
    shown = conversation(read)
    if as_json:
        emit_json(shown)
        return
    metadata = shown["metadata"]
    known = [f"{name}: {metadata[name]}" for name in ("recorded_at", "source") if name in metadata]
    emit_text(f"{file}  {', '.join(known)}".rstrip())
    for interaction in shown["interactions"]:
        emit_text("\n".join(_lines(interaction, full=full)))


def _lines(one: dict[str, Any], *, full: bool) -> list[str]:
    head = f"--- {one['number']} (line {one['line']}): {one['method']} {one['path']}"
    model = f", {one['model']}" if one["model"] else ""
    lines = ["", f"{head} {one['status']}{model}"]
    if one["repeated"]:
        lines.append(f"    ({one['repeated']} messages as before)")
    lines += [f"{part['role']}: {_cut(part['text'], full=full)}" for part in one["new"]]
    lines.append(f"reply: {_cut(one['reply'], full=full)}")
    tokens = ", ".join(f"{count:,} {name}" for name, count in one["tokens"].items())
    end = "" if one["end"] == "complete" else f", stream {one['end']}"
    if tokens or one["stop_reason"]:
        lines.append(f"    {one['stop_reason']}{end}; tokens: {tokens or 'unknown'}")
    return lines


def _cut(text: str, *, full: bool) -> str:
    if full or len(text) <= _EXCERPT:
        return text
    return f"{text[:_EXCERPT]}… ({len(text) - _EXCERPT:,} more characters)"


@cassettes.command()
def convert(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Cassettes, or folders.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write; by default the same file.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, write nothing.")
    ] = False,
    lay_out: Annotated[
        bool, typer.Option("--lay-out", help="Give each member of JSON a line of its own.")
    ] = False,
    backup_dir: Annotated[
        Path | None,
        typer.Option("--backup-dir", help="Where old files go; by default NAME.orig beside them."),
    ] = None,
    no_backup: Annotated[bool, typer.Option("--no-backup", help="Keep no old files.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where tests marked vcr may miss the old file.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite cassettes: answers decompressed, credentials gone, and all still found by vcrpy."""
    from pytest_regen.cassettes.upkeep.check import cassettes_in
    from pytest_regen.cassettes.upkeep.convert import convert as write
    from pytest_regen.cassettes.upkeep.convert import plan_conversion
    from pytest_regen.errors import CassetteError, UsageError

    files, _ = cassettes_in(paths)
    if out is not None and len(files) > 1:
        raise UsageError(
            f"--out {out} is one file, and {len(files)} are to be converted",
            hint="name one cassette, or leave --out away: each is replaced",
        )
    done: list[dict[str, Any]] = []
    for path in files:
        try:
            plan = plan_conversion(path, out, lays_out=lay_out, force=force)
            backup = None
            if plan.status == "convertible" and not dry_run:
                if plan.target == path and not no_backup:
                    backup = _backup_path(path, backup_dir)
                write(plan, backup)
        except (CassetteError, UsageError) as error:
            if len(files) == 1:
                raise
            done.append(_report_skip(path, error))
            continue
        done.append(_convert_file(plan, backup, dry_run=dry_run))
    statuses = [result["status"] for result in done]
    if as_json:
        emit_json({"ok": not {"refused", "unreadable"} & set(statuses), "files": done})
    else:
        _say_results(done)
    if "unreadable" in statuses:
        raise typer.Exit(2)
    raise typer.Exit(1 if "refused" in statuses else 0)


def _report_skip(path: Path, error: "RegenError") -> dict[str, Any]:
    from pytest_regen.errors import CassetteUnreadableError

    status = "unreadable" if isinstance(error, CassetteUnreadableError) else "refused"
    why = f"{error.what}: {error.why}" if error.why else error.what
    return {"path": str(path), "status": status, "why": why, "next": error.hint}


def _backup_path(path: Path, folder: Path | None) -> Path:
    """Return where an old file is kept; an older backup stays."""
    name = Path(os.path.relpath(path))
    place = path if folder is None else folder / (name.name if name.parts[:1] == ("..",) else name)
    numbers = ("", *(f".{number}" for number in range(2, _BACKUPS)))
    free = (place.with_name(f"{place.name}.orig{number}") for number in numbers)
    return next(path for path in free if not path.exists())


def _convert_file(plan: "Conversion", backup: Path | None, *, dry_run: bool) -> dict[str, Any]:
    is_done = plan.status == "convertible" and not dry_run
    row: dict[str, Any] = {
        "path": str(plan.path),
        "status": "converted" if is_done else plan.status,
        "written": str(plan.target) if is_done else None,
        "backup": str(backup) if backup else None,
        "interactions": plan.interactions,
    }
    if plan.status == "refused":
        return {**row, "why": plan.why, "next": plan.hint}
    changes = plan.changes
    return {
        **row,
        "changes": {
            **asdict(changes),
            "summary": str(changes) if plan.status == "convertible" else "nothing",
        },
    }


def _say_results(done: list[dict[str, Any]]) -> None:
    for result in done:
        if result["status"] in {"refused", "unreadable"}:
            say(f"{result['path']}: {result['status']}: {result['why']}\n  next: {result['next']}")
            continue
        recordings = plural(result["interactions"], "recording")
        place = result["written"] or result["path"]
        say(f"{place}: {_WORDS[result['status']]}, {recordings}: {result['changes']['summary']}")
    backups = [result["backup"] for result in done if result.get("backup")]
    if backups:
        more = f" and {len(backups) - 1} more" if len(backups) > 1 else ""
        say(f"the old files still hold what was removed: do not commit {backups[0]}{more}")
    counts = Counter(result["status"] for result in done)
    if len(done) > 1:
        say(", ".join(f"{count} {status}" for status, count in counts.items()))


_WORDS = {
    "converted": "converted",
    "convertible": "would be converted",
    "unchanged": "unchanged",
}
