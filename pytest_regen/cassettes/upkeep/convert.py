"""Conversion of foreign cassettes: decoded, without credentials, and playing as before."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.cassettes.files.parser import text_of
from pytest_regen.cassettes.files.reader import (
    CassetteFile,
    StoredInteraction,
    content_of,
    read_cassette,
)
from pytest_regen.cassettes.files.storage import (
    behind_links,
    name_parts,
    replace_cassette,
    unwritable,
)
from pytest_regen.cassettes.files.writer import check_text
from pytest_regen.cassettes.interactions import Interaction
from pytest_regen.cassettes.matching import Matching
from pytest_regen.cassettes.misses import Player
from pytest_regen.cassettes.recording import WireExchange, clean_interaction
from pytest_regen.cassettes.scrubbing import scrub_value, secrets_in
from pytest_regen.cassettes.upkeep.check import Limits, check_cassettes
from pytest_regen.credentials.search import find_secrets
from pytest_regen.errors import CassetteError, CassetteUnreadableError, RegenError, UsageError

_ENCODED = re.compile(r"""^\s*['"]?content-encoding['"]?:""", re.IGNORECASE | re.MULTILINE)
_DAY = re.compile(r"^  recorded_at: .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a conversion changes beside the layout."""

    headers: tuple[str, ...] = ()
    """Headers that are removed."""
    replaced_headers: tuple[str, ...] = ()
    """Headers whose value is replaced, at least in part."""
    credentials: tuple[str, ...] = ()
    """Kinds of credential that are replaced in bodies and addresses."""
    decompressed: bool = False
    """Whether any answer was compressed."""

    def __str__(self) -> str:
        parts = [
            *(_list_names("without the headers", self.headers)),
            *(_list_names("values replaced in", self.replaced_headers)),
            *(_list_names("credentials replaced:", self.credentials)),
            *(["answers decompressed"] if self.decompressed else []),
        ]
        return "; ".join(parts) or "nothing but the layout"


def _list_names(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {', '.join(names)}"] if names else []


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of one cassette."""

    path: Path
    target: Path
    status: Literal["convertible", "unchanged", "refused"]
    interactions: int
    changes: Changes = Changes()
    text: str = ""
    """The text of the new file."""
    why: str = ""
    """Why it cannot be converted."""
    hint: str = ""


def plan_conversion(
    path: Path, out: Path | None = None, *, lays_out: bool = False, force: bool = False
) -> Conversion:
    """Return what converting a cassette would do; nothing is written.

    The new file answers every request of the old one with the same decoded bytes, but for
    credentials, through this package and through an unconfigured vcrpy; otherwise the conversion is
    refused. A file that a suite's own serializer wrote is not replaced either, because that
    serializer could not read the new one.

    Args:
        path: the cassette as vcrpy or a project's own serializer wrote it.
        out: the target; by default the same file, or ``.yaml`` beside it if it was JSON.
        lays_out: whether JSON gets one line per member. This package plays the original bytes,
            vcrpy the text in the file.
        force: whether to convert it even if a test marked ``vcr`` may no longer find a recording.

    Raises:
        UsageError: there is no such file, it is empty, or the target exists already.
        CassetteUnreadableError: it is not a cassette.
    """
    file = read_cassette(path)
    if file is None:
        raise UsageError(f"{path} is not there", hint="name a cassette")
    if not file.interactions:
        raise UsageError(f"{path} holds no recording", hint="delete it, or record into it")
    stem, suffix, packed = name_parts(path)
    target = out or (path.with_name(f"{stem}.yaml{packed}") if suffix == ".json" else path)
    if target != path and target.exists():
        raise UsageError(
            f"{target} is there already", hint="delete it, or name another with --out FILE"
        )
    plan = Conversion(path, target, "refused", len(file.interactions))
    try:
        return _plan_text(plan, file, lays_out=lays_out, force=force)
    except CassetteUnreadableError:
        raise
    except CassetteError as error:
        return replace(plan, why=f"{error.what}: {error.why}", hint=error.hint)


def _plan_text(plan: Conversion, file: CassetteFile, *, lays_out: bool, force: bool) -> Conversion:
    text = text_of(plan.path, content_of(plan.path)[0] or b"")
    old = [stored.interaction for stored in file.interactions]
    cleaned = [clean_interaction(interaction) for interaction in old]
    if file.is_laid_out and cleaned == old and not lays_out:
        return replace(plan, status="unchanged", target=plan.path)
    in_place = plan.target == plan.path
    suffix = name_parts(plan.path)[1]
    is_named_otherwise = text.lstrip().startswith("{") and suffix != ".json"
    if is_named_otherwise and in_place and not force:
        why = f"it is JSON and is called {suffix}: its serializer could not read the new file"
        hint = "leave it, or use --force if no test reads it that way; --out FILE writes another"
        return replace(plan, why=why, hint=hint)
    new_text = _converted_text(file, cleaned, lays_out=lays_out or file.is_laid_out)
    plan = replace(
        plan, text=check_text(plan.target, new_text), changes=_changes(text, old, cleaned)
    )
    why = _first_loss(file, new_text, cleaned)
    if not why and in_place and not (file.is_laid_out or force):
        why = _first_loss_for_vcrpy(text, plan, cleaned, lays_out=lays_out)
    if why:
        hint = "record it again, or use --force if its tests use the fixture cassette"
        return replace(plan, why=why, hint=hint)
    return replace(plan, status="convertible")


def convert(plan: Conversion, backup: Path | None = None) -> None:
    """Write the planned file, in one step.

    Args:
        plan: a conversion that is possible.
        backup: where to keep the old file.

    Raises:
        CassetteError: it cannot be written.
    """
    try:
        if backup is not None:
            # Never over another, because the oldest may be the only file with what was sent.
            with backup.open("xb") as file:
                file.write(plan.path.read_bytes())
        replace_cassette(behind_links(plan.target), plan.text)
    except FileExistsError:
        raise UsageError(
            f"{backup} is there already",
            why="it may be the only file with what was sent",
            hint="move it away or delete it, then convert again",
        ) from None
    except OSError as error:
        raise unwritable(plan.target, error) from error


def is_cleanable(path: Path) -> bool:
    """Whether converting a cassette would remove every credential that a check finds."""
    try:
        plan = plan_conversion(path)
    except RegenError:
        return False
    if plan.status != "convertible":
        return False
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "c.yaml")
        target.write_text(plan.text, "utf-8", newline="\n")
        findings = check_cassettes([target], Limits())
    return not any(finding.code in {"SECRET", "HEADER"} for finding in findings)


def _converted_text(file: CassetteFile, cleaned: Sequence[Interaction], *, lays_out: bool) -> str:
    sources = list(map(WireExchange.of, cleaned))
    head = {
        **scrub_value(file.metadata),
        "source": ", ".join(sorted({source.source for source in sources})),
        "models": sorted({source.model for source in sources if source.model}),
    }
    texts = [interaction_text(interaction, lays_out=lays_out) for interaction in cleaned]
    if file.is_laid_out:
        texts = list(map(_with_day, texts, file.interactions))
    return header_text(head) + "".join(texts)


def _with_day(text: str, stored: StoredInteraction) -> str:
    """Return the text of a recording with the day that stood in it before."""
    head, _, lines = text.partition("\n")
    before = stored.text
    day = _DAY.search(before, 0, before.find("\n  request:") + 1)
    return f"{head}\n{day[0]}{lines}" if day else text


# Changes


def _changes(text: str, old: Sequence[Interaction], cleaned: Sequence[Interaction]) -> Changes:
    gone, other, kinds = set[str](), set[str](), set[str]()
    for before, after in zip(old, cleaned, strict=True):
        for had, has in (
            (before.request_headers, after.request_headers),
            (before.response_headers, after.response_headers),
        ):
            gone |= had.keys() - has.keys()
            other |= {name for name, values in has.items() if values != had[name]}
        if before.request_body != after.request_body:
            kinds |= {*secrets_in(before.request_body)}
        if before.response_body != after.response_body:
            kinds |= {*secrets_in(before.response_body)} or {"key-in-use"}
        if before.uri != after.uri:
            kinds |= {*find_secrets(before.uri)} or {"part of an address"}
    unpacked = _ENCODED.search(text) is not None
    return Changes(tuple(sorted(gone)), tuple(sorted(other)), tuple(sorted(kinds)), unpacked)


# Comparison of old and new


def _first_loss(file: CassetteFile, new_text: str, cleaned: Sequence[Interaction]) -> str:
    """Return the first request that the new file answers less well; empty if none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.yaml")
        path.write_text(new_text, "utf-8", newline="\n")
        new = read_cassette(path)
    matching = Matching()
    player = Player(path, new, matching)
    for number, (stored, expected) in enumerate(zip(file.interactions, cleaned, strict=True), 1):
        request = stored.interaction
        sent = matching.normalize_body(request.request_body)
        answer = player.find(request.method, request.uri, sent, in_place=False)
        place = f"recording {number} (line {stored.line})"
        if answer is None:
            return f"{place} would not be found any more"
        played = answer.interaction
        if (played.status, played.end) != (expected.status, expected.end):
            return f"{place} would have another status"
        if played.response_body != expected.response_body:
            return f"{place} would have another body"
    return ""


def _first_loss_for_vcrpy(
    text: str, plan: Conversion, cleaned: Sequence[Interaction], *, lays_out: bool
) -> str:
    from pytest_regen.cassettes.clients.vcr_files import VcrpyCannotReadError, first_loss_for_vcrpy

    answers = [interaction.response_body for interaction in cleaned]
    is_json = name_parts(plan.path)[1] == ".json"
    try:
        return first_loss_for_vcrpy(text, plan.text, answers, is_json=is_json, as_json=lays_out)
    except VcrpyCannotReadError as error:
        return f"vcrpy cannot read it, so a serializer of the suite's own must ({error})"
