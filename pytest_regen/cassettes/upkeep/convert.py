"""Conversion of foreign cassettes: decoded, without credentials, and playing as before."""

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pytest_regen.cassettes.files import storage
from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.cassettes.files.parser import text_of
from pytest_regen.cassettes.files.reader import content_of, read_cassette
from pytest_regen.cassettes.files.writer import check_text
from pytest_regen.cassettes.recording import changed_values, clean_exchange, made_by
from pytest_regen.cassettes.scrubbing import scrub_value
from pytest_regen.errors import CassetteError


@dataclass(frozen=True, slots=True)
class Conversion:
    """What one cassette becomes."""

    path: Path
    target: Path
    recordings: int
    text: str = ""
    """The new file; empty if nothing would change."""
    headers: tuple[str, ...] = ()
    """Headers that are removed."""
    replaced: tuple[str, ...] = ()
    """Where values are replaced: ``response body $.content[*].text``."""

    def __str__(self) -> str:
        parts = [f"without the headers {', '.join(self.headers)}"] if self.headers else []
        parts += [f"replaced: {', '.join(self.replaced)}"] if self.replaced else []
        return "; ".join(parts) or ("nothing but the layout" if self.text else "nothing")


def plan_conversion(path: Path, out: Path | None = None) -> Conversion:
    """Return what converting a cassette would do; nothing is written.

    Args:
        path: the cassette as vcrpy or a project's own serializer wrote it.
        out: the target; by default the same file, or ``.yaml`` beside it if it was JSON.

    Raises:
        CassetteError: it is no cassette, holds nothing, cannot be cleaned, or could not be played
            in its place by tests marked ``vcr``; or the target exists already.
    """
    file = read_cassette(path)
    if file is None or not file.interactions:
        raise CassetteError(f"{path} holds no recording", hint="delete it, or record into it")
    stem, suffix, packed = storage.name_parts(path)
    target = out or (path.with_name(f"{stem}.yaml{packed}") if suffix == ".json" else path)
    if target != path and target.exists():
        raise CassetteError(
            f"{target} is there already", hint="delete it, or name another with --out FILE"
        )
    old = [stored.interaction for stored in file.interactions]
    cleaned = [clean_exchange(one, is_foreign=True) for one in old]
    if file.head and cleaned == old:
        return Conversion(path, path, len(old))
    if target == path and not file.head:
        from pytest_regen.cassettes.clients.vcr_files import why_unreadable_for_vcrpy

        # Because tests marked vcr must be able to play the file converted in its place.
        text = text_of(path, content_of(path) or b"")
        why = ""
        if text.lstrip().startswith("{"):
            what = f"it is JSON and is called {path.name}"
            why = f"{what}: its serializer could not read the new file"
        elif loss := why_unreadable_for_vcrpy(text):
            why = f"vcrpy cannot read it, so a serializer of the suite's own must ({loss})"
        elif [one.uri for one in old] != [one.uri for one in cleaned]:
            why = "an address in it holds a credential: tests marked vcr would not find it without"
        if why:
            hint = "leave it, or write another file with --out FILE, for the fixture cassette"
            raise CassetteError(f"{path} is left as it is", why=why, hint=hint)
    head = {**scrub_value(file.metadata), **made_by(cleaned)}
    texts = [
        # Ours keep their bytes, and with them the day they were recorded.
        stored.text
        if file.head and clean == stored.interaction
        else interaction_text(clean, lays_out=bool(file.head))
        for stored, clean in zip(file.interactions, cleaned, strict=True)
    ]
    gone, replaced = set[str](), dict[str, None]()
    for before, after in zip(old, cleaned, strict=True):
        gone |= before.request_headers.keys() - after.request_headers.keys()
        gone |= before.response_headers.keys() - after.response_headers.keys()
        replaced.update((value.place, None) for value in changed_values(before, after))
    text = check_text(target, header_text(head) + "".join(texts))
    return Conversion(path, target, len(old), text, tuple(sorted(gone)), tuple(replaced))


def convert(plan: Conversion) -> None:
    """Write the planned file, in one step.

    Raises:
        CassetteError: it cannot be written, or would replace a file that git does not hold.
    """
    if plan.target == plan.path:
        old = plan.path.resolve()
        command = ("git", "status", "--porcelain", "--ignored", "-uall", "--", old.name)
        try:
            status = subprocess.run(command, cwd=old.parent, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            status = b"??"
        # Two letters: of what differs from the last commit, and of what differs from what was
        # added. The second alone counts, because git gives back what was added, too.
        if status[1:2] not in {b"", b" "}:
            stage = f"git add {shlex.quote(str(plan.path))}"
            raise CassetteError(
                f"{plan.path} is left as it is",
                why="git does not hold it as it is, so that the old file would be lost",
                hint=f"{stage}, or write another file with --out FILE",
            )
    try:
        storage.replace_cassette(storage.behind_links(plan.target), plan.text)
    except OSError as error:
        raise storage.unwritable(plan.target, error) from error
