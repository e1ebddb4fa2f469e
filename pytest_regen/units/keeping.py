"""What becomes of units without a model, while their file is locked: the verbs but for asking."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pytest_regen.errors import SourceError, UsageError
from pytest_regen.regeneration.flow import source_diff
from pytest_regen.regeneration.values import Changes, Written
from pytest_regen.units.kind import Kind
from pytest_regen.units.ledger import Entry, PastText, hand_name, read_history
from pytest_regen.units.naming import command
from pytest_regen.units.texts import call_region, put_texts, same_text, sides, texts_or_none
from pytest_regen.units.view import FileUnits, refuse_unknown
from pytest_regen.units.writing import UnitWrite, hand_entry, renewed_entry


def adopt(
    units: FileUnits, write: UnitWrite, names: Sequence[str] | None, *, with_stale: bool = False
) -> Changes:
    """Record texts as they stand: as a person's, but for those that are as a model wrote them."""
    refuse_unreadable(units)
    for name in names or ():
        refuse_unknown(units, name, units.texts)
    if names is None:
        names = [name for name in units.names if _is_unadopted(units, name, with_stale=with_stale)]
    history = []
    for name in names:
        text, codes = units.texts[name].text, _codes(units, name)
        if "CONFLICT" in codes:
            raise _conflict_error(units)
        if "MISSING_UNIT" in codes:
            raise UsageError(
                f"{units.place} has no text of {name!r} to record",
                why="only a stub stands there",
                hint=command("generate", units.here, name),
            )
        # What git could not join was written by one of the two.
        versions = units.ledger.conflicts().get(name, ())
        entries = [entry for entry in (units.entry(name), *versions) if entry is not None]
        author = next((entry for entry in entries if _wrote(entry, units.kind, text)), None)
        write.record(renewed_entry(units, author) if author else hand_entry(units, name))
        history += [
            write.keep_entry(entry, "adopted")
            for entry in entries
            if entry.output not in {"", text}
        ]
    if hand_name(units.place) in units.ledger.broken:
        write.settle_file(hand_name(units.place))
    write.commit()
    return Changes(tuple(names), tuple(history))


def rebuild(
    units: FileUnits, write: UnitWrite, names: Sequence[str] | None, *, keep_lost: bool = False
) -> Changes:
    """Put recorded texts back into the file; what stands there goes to the history.

    Texts that a person wrote stay as they are. A file with conflict markers of git is written as
    our side has it, with every recorded text; as it was, it goes to the history.
    """
    if keep_lost:
        names = [name for name in names or () if "DRIFT" in _codes(units, name)]
    if names == []:
        return Changes(())
    # An entry that git could not join is ours again; theirs goes to the history.
    conflicts = units.ledger.conflicts()
    entries = {**units.ledger.entries, **{name: ours for name, (ours, _) in conflicts.items()}}
    for name in names or ():
        refuse_unknown(units, name, entries)
        if entries[name].is_by_hand and not entries[name].output:
            raise UsageError(
                f"nothing is recorded that {name!r:.80} could be rebuilt from",
                why="a person wrote it, and only the file has a person's text",
                hint=command("history", units.here, name),
            )
    base, before, unit_names = units.text, units.texts, units.names
    history: list[str] = []
    if units.is_torn and not names:
        base, before = sides(units.text)[0], {}
        history.append(write.keep_file())
        unit_names = tuple(dict.fromkeys((*unit_names, *texts_or_none(units.kind, base))))
    else:
        refuse_unreadable(units)
    recorded = [name for name in unit_names if name in entries]
    by_hand = [name for name in recorded if entries[name].is_by_hand]
    chosen = names or [name for name in recorded if not entries[name].is_by_hand]
    for name in sorted(conflicts.keys() & {*chosen, *([] if names else by_hand)}):
        ours, theirs = conflicts[name]
        write.record(ours)
        if theirs.output:
            history.append(write.keep_entry(theirs, "dropped"))
    texts: dict[str, str] = {}
    for name in chosen:
        stands, text = before.get(name), entries[name].output
        if stands is None or not same_text(units.kind, text, stands.text):
            texts[name] = text
    history += (
        write.keep_text(name, before[name].text, "dropped") for name in texts if name in before
    )
    write.text = put_texts(units.kind, base, texts, units.names, units.place)
    write.commit()
    diff = source_diff(units.text, write.text, units.place)
    return Changes(tuple(texts), tuple(history), diff, by_hand=len(by_hand))


def forget(units: FileUnits, write: UnitWrite, names: Sequence[str] | None) -> Changes:
    """Drop what nothing asks for: entries of the ledger, and texts where the region can."""
    refuse_unreadable(units)
    entries, unit_names = units.ledger.entries, set(units.names)
    every = dict.fromkeys((*units.names, *units.texts, *entries))
    for name in names or ():
        refuse_unknown(units, name, every)
    chosen = names or [name for name in every if name not in unit_names]
    history = []
    for name in chosen:
        entry, stands = units.entry(name), units.texts.get(name)
        if entry is not None:
            write.drop(name)
            if entry.output:
                history.append(write.keep_entry(entry, "forgotten"))
        is_other = entry is None or (stands is not None and stands.text != entry.output)
        if stands is not None and name not in unit_names and is_other:
            history.append(write.keep_text(name, stands.text, "forgotten"))
    unasked = [name for name in chosen if name in units.texts and name not in unit_names]
    notes = []
    if not write.remove(unasked):
        notes = [f"take {name!r} out of {units.place} by hand" for name in unasked]
    # Not where units are named, because ``forget`` never drops what it was not told of.
    dropped = units.unasked_files if names is None else ()
    for file in dropped:
        write.settle_file(file)
    write.commit()
    diff = source_diff(units.text, write.text_now, units.place)
    return Changes(tuple(chosen), tuple(history), diff, notes=tuple(notes), dropped=dropped)


def restore(units: FileUnits, write: UnitWrite, name: str, to: str | None) -> Changes:
    """Make a text from the history the recorded one; what it replaces goes to the history."""
    refuse_unreadable(units)
    entry = _past_text(units, name, to).entry
    if error := units.hand_edit(name, why="restoring another text would discard the edit"):
        raise error
    stands = units.texts.get(name)
    history = () if stands is None else (write.keep_text(name, stands.text, "restored"),)
    write.put({name: entry.output})
    # One that was never recorded is made from what there is now.
    write.record(hand_entry(units, name) if entry.is_by_hand else entry)
    write.commit()
    diff = source_diff(units.text, write.text_now, units.place)
    return Changes((name,), history, diff, (Written(name, 1, entry.model),))


def enclose(units: FileUnits, write: UnitWrite, names: Sequence[str]) -> tuple[str, ...]:
    """Put markers around texts that stand in a file without them; return whose they are.

    A region without ``enclose`` or ``enclose_all`` leaves the file as it is.
    """
    refuse_unreadable(units)
    kind, text = units.kind, units.text
    bare = [name for name in dict.fromkeys(names) if name not in units.texts]
    enclose_all: Any = getattr(kind.region, "enclose_all", None)
    enclose_one: Any = getattr(kind.region, "enclose", None)
    if enclose_all and bare:  # Because a file of hundreds of them is read once then.
        text = call_region(kind, "enclose_all", partial(enclose_all, text, bare), units.place)
    elif enclose_one:
        for name in bare:
            text = call_region(kind, "enclose", partial(enclose_one, text, name), units.place)
    if text != units.text:
        write.text = text
        write.commit()
    return tuple(bare)


def _past_text(units: FileUnits, name: str, to: str | None) -> PastText:
    texts = [
        past for past in read_history(units.files, units.ledger.place) if past.entry.name == name
    ]
    if to is not None:
        texts = [past for past in texts if past.id == to.removesuffix(".json")]
    else:
        # What was rejected or brought back was never, or is no longer, what somebody wants back.
        ended = [past for past in texts if past.reason in {"replaced", "adopted", "forgotten"}]
        texts = ended or texts
    if not texts:
        raise UsageError(
            f"the history of {units.place} has no text of {name!r}{f' called {to}' if to else ''}",
            hint=command("history", units.here),
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
    return (is_new or (with_stale and "STALE" in codes)) and "MISSING_UNIT" not in codes


def refuse_unreadable(units: FileUnits) -> None:
    """Raise where a file cannot be split into its units."""
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
    hint += f"{command('rebuild', units.here)}, which takes ours with every recorded text"
    return SourceError(
        f"{units.place} holds conflict markers of git, about {names}",
        why="the file is two versions of itself",
        hint=hint,
    )
