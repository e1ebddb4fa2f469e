"""Work on units that needs no model: adopt, rebuild, restore, forget, and the history."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from pytest_regen.errors import HandEditError, SourceError, UsageError
from pytest_regen.regeneration.flow import source_diff
from pytest_regen.units.kind import Kind
from pytest_regen.units.ledger import Entry, PastText, hand_name, read_history
from pytest_regen.units.naming import adopt_command, command, rebuild_command
from pytest_regen.units.place import UnitFile
from pytest_regen.units.texts import call_region, put_texts, same_text, sides, texts_or_none
from pytest_regen.units.view import FileUnits
from pytest_regen.units.writing import hand_entry, renewed_entry


@dataclass(frozen=True, slots=True)
class UnitChanges:
    """What became of a file's units."""

    names: tuple[str, ...]
    """The units that were changed."""
    history: tuple[str, ...] = ()
    """Ids of the texts that went to the history."""
    diff: str = ""
    """Unified diff of the file."""
    notes: tuple[str, ...] = ()
    """What is left to do by hand."""
    dropped: tuple[str, ...] = ()
    """Files of the ledger that could not be read, and are gone."""
    by_hand: int = 0
    """Texts that a person wrote, which stay as they are."""


def adopt_units(
    file: UnitFile, names: Sequence[str] | None = None, *, with_stale: bool = False
) -> UnitChanges:
    """Record texts as they stand: as a person's, but for those that are as a model wrote them.

    Args:
        file: the file.
        names: the units, whatever their state; by default those that are not recorded, or are not
            as they were recorded.
        with_stale: also those that were made from something else than there is now.

    Raises:
        UsageError: the file has no such unit, or no text of it.
        SourceError: the file cannot be read, because of conflict markers for one.
        KindError: a method of the kind raised.
    """
    with file.writing() as (units, write):
        _refuse_unreadable(units)
        for name in names or ():
            refuse_unknown(units, name, units.texts)
        if names is None:
            names = [n for n in units.names if _is_unadopted(units, n, with_stale=with_stale)]
        history = []
        for name in names:
            text = units.texts[name].text
            if "CONFLICT" in _codes(units, name):
                raise _conflict_error(units)
            if "MISSING_UNIT" in _codes(units, name):
                raise UsageError(
                    f"{file.place} has no text of {name!r} to record",
                    why="only a stub stands there",
                    hint=command("generate", file.here, name),
                )
            # What git could not join was written by one of the two.
            sides = units.ledger.conflicts().get(name, ())
            entries = [one for one in (units.entry(name), *sides) if one is not None]
            written = next((one for one in entries if _wrote(one, file.kind, text)), None)
            new = renewed_entry(units, written) if written else hand_entry(units, name)
            write.record(new)
            history += [
                write.keep_entry(one, "adopted") for one in entries if one.output not in {"", text}
            ]
        for broken in units.ledger.broken:
            if broken == hand_name(file.place):
                write.settle_file(broken)
        write.commit()
        return UnitChanges(tuple(names), tuple(history))


def enclose_units(file: UnitFile, names: Sequence[str]) -> tuple[str, ...]:
    """Put markers around texts that stand in a file without them; return whose they are.

    Args:
        file: the file; a region without ``enclose`` or ``enclose_all`` leaves it as it is.
        names: the units; those that have their markers stay as they are.

    Raises:
        SourceError: the file cannot be read, or holds no such text.
    """
    kind = file.kind
    with file.writing() as (units, write):
        _refuse_unreadable(units)
        made, new = units.text, [name for name in dict.fromkeys(names) if name not in units.texts]
        enclose_all: Any = getattr(kind.region, "enclose_all", None)
        enclose: Any = getattr(kind.region, "enclose", None)
        if enclose_all and new:  # A file of hundreds of them is read once.
            made = call_region(kind, "enclose_all", partial(enclose_all, made, new), file.place)
        elif enclose:
            for name in new:
                made = call_region(kind, "enclose", partial(enclose, made, name), file.place)
        if made != units.text:
            write.text = made
            write.commit()
    return tuple(new)


def rebuild_units(file: UnitFile, names: Sequence[str] | None = None) -> UnitChanges:
    """Put recorded texts back into the file; what stands there goes to the history.

    Texts that a person wrote stay as they are.

    A file with conflict markers of git is written as our side has it, with every recorded text;
    as it was, it goes to the history.

    Args:
        file: the file.
        names: the units; by default all that are recorded.

    Raises:
        UsageError: there is no record of such a unit.
        SourceError: the file cannot be read, or has no place for a unit.
    """
    with file.writing() as (units, write):
        # An entry that git could not join is ours again; theirs goes to the history.
        conflicts = units.ledger.conflicts()
        ours = {name: entry for name, (entry, _) in conflicts.items()}
        entries = {**units.ledger.entries, **ours}
        for name in names or ():
            refuse_unknown(units, name, entries)
        base, before, asked = units.text, units.texts, units.names
        history: list[str] = []
        if units.is_torn and not names:
            base = sides(units.text)[0]
            history.append(write.keep_file())
            asked = tuple(dict.fromkeys((*asked, *texts_or_none(file.kind, base))))
            before = {}
        else:
            _refuse_unreadable(units)
        for name in names or ():
            if entries[name].is_by_hand and not entries[name].output:
                raise UsageError(
                    f"nothing is recorded that {name!r:.80} could be rebuilt from",
                    why="a person wrote it, and only the file has a person's text",
                    hint=command("history", file.here, name),
                )
        recorded = [name for name in asked if name in entries]
        by_hand = [name for name in recorded if entries[name].is_by_hand]
        chosen = names or [name for name in recorded if not entries[name].is_by_hand]
        texts: dict[str, str] = {}
        for name in sorted(conflicts.keys() & {*chosen, *([] if names else by_hand)}):
            entry, other = conflicts[name]
            write.record(entry)
            if other.output:
                history.append(write.keep_entry(other, "dropped"))
        for name in chosen:
            stands = before.get(name)
            if stands is not None and same_text(file.kind, entries[name].output, stands.text):
                continue
            texts[name] = entries[name].output
            if stands is not None:
                history.append(write.keep_text(name, stands.text, "dropped"))
        write.text = put_texts(file.kind, base, texts, units.names, file.place)
        write.commit()
        diff = source_diff(units.text, write.text, file.place)
        return UnitChanges(tuple(texts), tuple(history), diff, by_hand=len(by_hand))


def forget_units(file: UnitFile, names: Sequence[str] | None = None) -> UnitChanges:
    """Drop what nothing asks for: entries of the ledger, and texts where the region can.

    Of a unit that is still asked for only the entry is dropped.

    Args:
        file: the file.
        names: the units; by default all that the kind does not name.

    Raises:
        UsageError: there is neither a text nor a record of such a unit.
        SourceError: the file cannot be read.
    """
    with file.writing() as (units, write):
        _refuse_unreadable(units)
        entries = units.ledger.entries
        known = dict.fromkeys((*units.names, *units.texts, *entries))
        for name in names or ():
            refuse_unknown(units, name, known)
        asked = set(units.names)
        chosen = names or [name for name in known if name not in asked]
        history = []
        for name in chosen:
            entry = units.entry(name)
            stands = units.texts.get(name)
            if entry is not None:
                write.drop(name)
            if entry is not None and entry.output:
                history.append(write.keep_entry(entry, "forgotten"))
            is_other = entry is None or (stands is not None and stands.text != entry.output)
            if stands is not None and name not in asked and is_other:
                history.append(write.keep_text(name, stands.text, "forgotten"))
        unasked = [name for name in chosen if name in units.texts and name not in asked]
        notes = []
        if not write.remove(unasked):
            notes = [f"take {name!r} out of {file.place} by hand" for name in unasked]
        dropped = units.unasked_files if names is None else ()
        for broken in dropped:
            write.settle_file(broken)
        write.commit()
        diff = source_diff(units.text, write.text_now, file.place)
        return UnitChanges(tuple(chosen), tuple(history), diff, tuple(notes), dropped=dropped)


def restore_unit(file: UnitFile, name: str, to: str | None = None) -> tuple[PastText, UnitChanges]:
    """Make a text from the history the recorded one; what it replaces goes to the history.

    Args:
        file: the file.
        name: the unit.
        to: id of a past text; by default the last one that was replaced.

    Raises:
        UsageError: there is no such text.
        HandEditError: the unit was edited by hand, and restoring would discard the edit.
        SourceError: the file cannot be read, or has no place for the unit.
    """
    with file.writing() as (units, write):
        _refuse_unreadable(units)
        past = _past_text(file, units, name, to)
        if "DRIFT" in _codes(units, name):
            raise HandEditError(
                f"{name} in {file.place} was edited by hand",
                why="restoring another text would discard the edit",
                hint=f"keep it: {adopt_command(file.here, name)}; "
                f"or drop it: {rebuild_command(file.here, name)}",
            )
        stands = units.texts.get(name)
        history = []
        if stands is not None:
            history.append(write.keep_text(name, stands.text, "restored"))
        write.put({name: past.entry.output})
        write.record(_restored_entry(units, past.entry))
        write.commit()
        diff = source_diff(units.text, write.text_now, file.place)
        return past, UnitChanges((name,), tuple(history), diff)


def unit_history(file: UnitFile, name: str | None = None) -> tuple[PastText, ...]:
    """Return the past texts of a file's units, oldest first.

    Raises:
        StoreCorruptError: one cannot be read.
    """
    units = file.open()
    found = tuple(read_history(units.files, units.ledger.place))
    return tuple(past for past in found if name in (None, past.entry.name))


def _restored_entry(units: FileUnits, entry: Entry) -> Entry:
    """Return a past entry as the present one; one that was never recorded is made from now."""
    return hand_entry(units, entry.name) if entry.is_by_hand else entry


def _past_text(file: UnitFile, units: FileUnits, name: str, to: str | None) -> PastText:
    texts = [
        past for past in read_history(units.files, units.ledger.place) if past.entry.name == name
    ]
    if to is None:
        # What was rejected or brought back was never, or is no longer, what somebody wants back.
        texts = [
            text for text in texts if text.reason in {"replaced", "adopted", "forgotten"}
        ] or texts
    else:
        texts = [text for text in texts if text.id == to.removesuffix(".json")]
    if not texts:
        raise UsageError(
            f"the history of {file.place} has no text of {name!r}{f' called {to}' if to else ''}",
            hint=command("history", file.here),
        )
    return texts[-1]


def _codes(units: FileUnits, name: str) -> set[str]:
    return {issue.code for issue in units.all_issues(name)}


def _wrote(entry: Entry, kind: Kind, text: str) -> bool:
    """Return whether a text is the one that an entry has of a model."""
    return not entry.is_by_hand and same_text(kind, entry.output, text)


def _is_unadopted(units: FileUnits, name: str, *, with_stale: bool) -> bool:
    codes = _codes(units, name)
    is_new = units.entry(name) is None or bool(codes & {"DRIFT", "LEDGER"})
    is_new = is_new or (with_stale and "STALE" in codes)
    return is_new and "MISSING_UNIT" not in codes


def _refuse_unreadable(units: FileUnits) -> None:
    if units.fault is None:
        return
    if units.has_conflict:
        raise _conflict_error(units)
    message = units.fault.message
    raise SourceError(
        message if message.startswith(units.place) else f"{units.place}: {message}",
        why=units.fault.detail or "",
        hint="correct the file",
    )


def _conflict_error(units: FileUnits) -> SourceError:
    names = ", ".join(sorted(units.conflicting)) or "none of its units"
    hint = "take one side, or both, in an editor; or "
    hint += f"{rebuild_command(units.here)}, which takes ours with every recorded text"
    return SourceError(
        f"{units.place} holds conflict markers of git, about {names}",
        why="the file is two versions of itself",
        hint=hint,
    )


def refuse_unknown(units: FileUnits, name: str, known: Collection[str]) -> None:
    """Raise a UsageError where a file has no unit of that name; it names near ones."""
    if name in known:
        return
    near = get_close_matches(name, known, n=3) or list(known)[:8]
    raise UsageError(
        f"{units.place} has no unit {name!r:.80}",
        why=f"near are {', '.join(near)}" if near else "it has none that could be meant",
        hint=f"name one of these; pytest --collect-only {units.here} lists all",
    )
