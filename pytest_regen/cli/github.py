"""What commands show on GitHub: annotations in the log, and a part of the job summary."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_regen.cli.project import Project
from pytest_regen.github import (
    Annotation,
    annotation_lines,
    append_summary,
    code_span,
    summary_file,
    table,
    wants_annotations,
)
from pytest_regen.modes import stale_outcome
from pytest_regen.text import plural

if TYPE_CHECKING:
    from pytest_regen.cassettes.upkeep.check import Finding
    from pytest_regen.cli.operations import StoreResults

Report = Mapping[str, Any]

OutdatedUnits = tuple[list[tuple[str, str, str]], int]
"""Units, each with its id, its file, and why it would be asked for; files that have none."""


def tell_validated(project: Project, stores: Sequence[Report], files: Sequence[Report]) -> None:
    """Tell GitHub what ``validate`` found.

    Args:
        project: with its settings.
        stores: their reports, as ``--json`` shows them.
        files: those of files with units.
    """
    if not _is_read(project):
        return
    found: list[Annotation] = []
    for place, of_place in (*map(_of_store, stores), *map(_of_file, files)):
        for unit, issue in of_place:
            is_stale = issue["code"] == "STALE" and not issue.get("is_by_hand")
            is_error = issue["severity"] == "error" or (
                is_stale and stale_outcome(project.stale) == "fail"
            )
            if issue["code"] == "STALE" and stale_outcome(project.stale) == "ignore":
                continue
            file, line = issue.get("file"), issue.get("line")
            found.append(
                Annotation(
                    "error" if is_error else "warning",
                    f"{issue['code']}: {unit}",
                    "\n".join(filter(None, (issue["message"], issue.get("detail")))),
                    Path(place).with_name(file) if file else Path(place),
                    line,
                )
            )
    failing = [report for report in (*stores, *files) if not report["ok"]]
    total = len(stores) + len(files)
    verdict = f"{len(failing)} of {plural(total, 'place')} with errors"
    if not failing:
        verdict = f"{plural(total, 'place')} without errors"
    following = next((report["next"] for report in failing if report["next"]), "")
    _tell(project, f"pytest-regen validate: {verdict}", found, following)


def _of_store(report: Report) -> tuple[str, list[tuple[str, Report]]]:
    types = report["types"]
    return report["source"], [
        (f"{report['path']}::{type_['name']}", issue)
        for type_ in types
        for issue in (*type_["errors"], *type_["warnings"])
    ]


def _of_file(report: Report) -> tuple[str, list[tuple[str, Report]]]:
    place = report["path"]
    of_file = [
        (f"{place}::{issue['type_name']}" if issue["type_name"] else place, issue)
        for issue in (*report["errors"], *report["orphans"])
    ]
    return place, [
        *of_file,
        *(
            (f"{place}::{unit['name']}", issue)
            for unit in report["units"]
            for issue in (*unit["errors"], *unit["warnings"])
        ),
    ]


def tell_outdated_stores(
    project: Project, results: "StoreResults", document: Path, following: str
) -> None:
    """Tell GitHub what ``generate --check`` found in the stores of a document.

    Args:
        project: with its settings.
        results: what came of each operation.
        document: the API description, which is where people look for a change.
        following: the command to run.
    """
    if not _is_read(project):
        return
    found = [
        Annotation(
            "error",
            f"out of date: {done.path.as_posix()}",
            "there is no store yet" if done.is_new else "the store is older than the document",
            document,
        )
        for done in results.done
        if not done.is_current
    ]
    found += [
        Annotation("error", f"impossible: {name}", f"{error.what}\n{error.why}".strip(), document)
        for name, error in results.failed
    ]
    _tell_outdated(project, found, sum(done.is_current for done in results.done), following)


def tell_outdated_units(project: Project, find: Callable[[], OutdatedUnits]) -> None:
    """Tell GitHub what ``generate --check`` found in files of units; ``find`` looks for it."""
    if not _is_read(project):
        return
    from pytest_regen.units.naming import generate_command

    outdated, current = find()
    found = [
        Annotation("error", f"out of date: {unit}", why, Path(file)) for unit, file, why in outdated
    ]
    following = generate_command(outdated[0][1]) if outdated else ""
    _tell_outdated(project, found, current, following)


def _tell_outdated(
    project: Project, found: Sequence[Annotation], current: int, following: str
) -> None:
    verdict = f"{plural(current, 'place')} up to date"
    verdict += f", {len(found):,} out of date" if found else ""
    _tell(project, f"pytest-regen generate --check: {verdict}", found, following if found else "")


def tell_findings(
    project: Project, checked: int, findings: "Iterable[Finding]", following: str
) -> None:
    """Tell GitHub what ``cassettes check`` found.

    Args:
        project: with its settings.
        checked: how many cassettes were looked at.
        findings: about them.
        following: the command to run.
    """
    if not _is_read(project):
        return
    found = [
        Annotation(
            "error" if finding.severity == "error" else "warning",
            f"{finding.code}: {finding.path}",
            finding.message,
            finding.path,
            finding.line,
        )
        for finding in findings
    ]
    errors = sum(each.level == "error" for each in found)
    verdict = f"{plural(checked, 'cassette')}, {plural(errors, 'error')}"
    warnings = len(found) - errors
    verdict += f", {plural(warnings, 'warning')}" if warnings else ""
    _tell(project, f"pytest-regen cassettes check: {verdict}", found, following)


def _is_read(project: Project) -> bool:
    return summary_file() is not None or wants_annotations(project.annotations)


def _tell(project: Project, title: str, found: Sequence[Annotation], following: str) -> None:
    """Print annotations on stderr, where JSON is not, and append to the job summary."""
    from pytest_regen.credentials.search import scrub_text

    clean = [
        replace(each, title=scrub_text(each.title), message=scrub_text(each.message))
        for each in found
    ]
    clean.sort(key=lambda each: each.level)
    if wants_annotations(project.annotations):
        sys.stderr.writelines(f"{line}\n" for line in annotation_lines(clean))
        sys.stderr.flush()
    file = summary_file()
    if file is None:
        return
    try:
        append_summary(file, _blocks(title, clean, following))
    except OSError as error:
        from pytest_regen.cli.output import say

        say(f"note: GITHUB_STEP_SUMMARY was not written: {error.strerror or error}: {file}")


def _blocks(title: str, found: Sequence[Annotation], following: str) -> Iterable[str]:
    yield f"### {title}"
    errors = [each for each in found if each.level == "error"]
    rows = [
        (code_span(each.title), code_span(each.message.partition("\n")[0]), code_span(_place(each)))
        for each in errors
    ]
    if rows:
        yield table(("failing", "what is wrong", "where"), rows)
    if following:
        yield f"Next: {code_span(following)}"


def _place(found: Annotation) -> str:
    place = found.path.as_posix() if found.path else ""
    return f"{place}:{found.line}" if found.line else place
