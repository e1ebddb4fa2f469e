"""The units of one file under the lock: kept, put back and dropped without a model.

The file, the ledger and the history change together, or none of them does.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_regen.commit import Candidate, new_id, now
from pytest_regen.errors import SourceError, UnknownPageError, UsageError
from pytest_regen.regeneration.places import Changes, Written
from pytest_regen.regeneration.values import Answer, Rejected
from pytest_regen.strict_json import as_json
from pytest_regen.text import source_diff
from pytest_regen.units import ledger as ledgers
from pytest_regen.units import texts
from pytest_regen.units.ledger import Entry, PastReason, PastText
from pytest_regen.units.naming import command
from pytest_regen.units.view import FileUnits, refuse_unknown
from pytest_regen.validation.issues import Issue


class UnitUpdate:
    """A file of units that is locked for writing.

    Args:
        file: the file as a place.
        view: what it holds, read under the lock.
    """

    # Not by its class, ``UnitFile``, because that one's module imports this one.
    def __init__(self, file: Any, view: FileUnits) -> None:
        self.file = file
        self.view = view
        """What it holds, read under the lock and again after ``write``."""
        self.text = view.text
        """The whole file from now on."""
        self.entries: dict[str, Entry | None] = {}
        """What the ledger says of units from now on; ``None`` where it forgets one."""
        self._dropped: list[str] = []
        """Files of the ledger that go; of the lines by hand, those that say nothing."""
        self._kept: dict[str, bytes | PastText] = {}
        """What goes to the history, by its name there."""

    # What is about to be written

    def keep_text(
        self, name: str, text: str, reason: PastReason, issues: Iterable[Issue] = ()
    ) -> str:
        """Put a text of a unit into the history; return its id there."""
        old = self.view.entry(name)
        if old is None or old.output != text:
            # Not what the ledger recorded: count it as written by hand.
            attempt = old.attempt if old else 1
            old = Entry(name, text, attempt=attempt, generated_at=now())
        return self.keep_entry(old, reason, issues)

    def keep_entry(self, entry: Entry, reason: PastReason, issues: Iterable[Issue] = ()) -> str:
        """Put an entry into the history; return its id there."""
        past = PastText(f"{new_id()}-{ledgers.slug(entry.name)}", reason, entry, tuple(issues))
        self._kept[f"{past.id}.json"] = past
        return past.id

    def commit(self) -> None:
        """Write everything.

        Raises:
            StoreWriteError: the files cannot be written; they are as they were.
        """
        with self.file.files.explain_errors():
            contents = self.contents()
        if contents:
            # In one change, because a kill between text and entry would look like an edit by hand.
            self.file.files.commit(contents)

    def contents(self) -> dict[str, bytes | None]:
        """Return what the files of these units are going to hold, and what all units share."""
        view, place, ledger = self.view, self.view.place, self.view.ledger
        folder = f"{ledgers.HISTORY}/{place}"
        contents: dict[str, bytes | None] = {
            f"{folder}/{name}": kept if isinstance(kept, bytes) else as_json(kept.to_json())
            for name, kept in self._kept.items()
        }
        if contents:
            contents |= self.file.files.ignore_file(ledgers.HISTORY)
        if ledger.place != place:
            contents |= ledger.moved_to(place)
        hand = ledgers.hand_name(place)
        contents |= {name: None for name in self._dropped if name != hand}
        lines = dict(ledger.lines)
        # After a move, because what is recorded now wins over what was moved.
        for name, entry in self.entries.items():
            # A file of its own says more than a line, so that only one of them is kept.
            lines.pop(name, None)
            is_line = entry is not None and entry.is_line
            if entry is not None and is_line:
                lines[name] = entry.own_inputs
            file = ledgers.entry_name(place, name)
            contents[file] = None
            if entry is not None and not is_line:
                contents[file] = as_json(entry.to_json())
        if lines != ledger.lines or hand in self._dropped:
            contents[hand] = ledgers.hand_lines(lines) or None
        if self.text != view.text:
            contents[place] = self.text.encode("utf-8")
        return {**contents, **self._beside()} if contents else {}

    def _beside(self) -> dict[str, bytes | None]:
        """Return what is written for all units."""
        view, contents = self.view, dict[str, bytes | None]()
        system = view.system_sha256
        if any(entry and entry.system_sha256 == system for entry in self.entries.values()):
            text = view.kind.system.encode("utf-8", "surrogatepass")
            contents[f"{ledgers.SYSTEMS}/{system.removeprefix('sha256:')}.txt"] = text
        is_code = view.kind.is_imported
        # Nothing is run of what is not code, and nothing is imported for that.
        if is_code or "pytest_regen.sandbox.levels" in sys.modules:
            from pytest_regen.sandbox.verdicts import level_to_remember

            contents |= level_to_remember(self.file.root, is_code=is_code)
        return contents

    # What a model answered

    def write(
        self, candidate: FileUnits, answers: Sequence[Answer], rejected: Rejected
    ) -> tuple[str, ...]:
        """Write what is kept and put the rest in the history; return the ids of the rest."""
        ids = [
            self.keep_entry(self.view.entry_of(answer), "rejected", issues)
            for answer, issues in rejected.items()
        ]
        self._put(candidate, answers)
        self.commit()
        if answers:
            self.view = candidate.as_stored()
        return tuple(ids)

    def candidate(
        self, answers: Sequence[Answer], issues: Mapping[str, Sequence[Issue]]
    ) -> Candidate:
        """Return new texts as a trial puts them in place.

        Args:
            answers: the texts.
            issues: what is wrong with them, by unit; kept with those that do not stay.
        """
        self._put(self.view.with_answers(answers), answers)
        # Apart, because what a refused candidate leaves is written without its texts.
        rejected = UnitUpdate(self.file, self.view)
        ids = [
            rejected.keep_entry(self.view.entry_of(answer), "rejected", issues[answer.ask.name])
            for answer in answers
        ]
        return Candidate(self.contents(), rejected.contents(), tuple(ids))

    def _put(self, candidate: FileUnits, answers: Sequence[Answer]) -> None:
        """Record new texts; those they replace go to the history, unless blank or the same."""
        for answer in answers:
            name, old = answer.ask.name, self.view.output(answer.ask.name, 1)
            if name not in candidate.new_entries:
                continue  # It has no place in the file; only a trial is made of such an answer.
            if old is not None and old.strip() and old != answer.output:
                self.keep_text(name, old, "replaced", self.view.all_issues(name))
            self.entries[name] = candidate.new_entries[name]
        if answers:
            self.text = candidate.text

    # What needs no model

    def adopt(self, names: Sequence[str] | None, *, with_stale: bool = False) -> Changes:
        """Record texts as they stand: as a person's, but for those as a model wrote them."""
        view = self._readable()
        codes = {name: {issue.code for issue in view.all_issues(name)} for name in view.names}
        if names is None:
            edited = {"DRIFT", "LEDGER", *(("STALE",) if with_stale else ())}
            names = [
                name
                for name, wrong in codes.items()
                if (view.entry(name) is None or wrong & edited) and "MISSING_UNIT" not in wrong
            ]
        history, torn = [], view.ledger.conflicts()
        # Nothing is written before the end, because one refusal leaves all units as they were.
        for name in names:
            refuse_unknown(view, name, view.texts)
            if "CONFLICT" in codes.get(name, ()):
                raise _conflict_error(view)
            if "MISSING_UNIT" in codes.get(name, ()):
                raise UsageError(
                    f"{view.place} has no text of {name!r} to record",
                    why="only a stub stands there",
                    hint=command("generate", view.here, name),
                )
            text = view.texts[name].text
            # What git could not join was written by one of the two.
            entries = [entry for entry in (view.entry(name), *torn.get(name, ())) if entry]
            for entry in entries:
                if not entry.is_by_hand and texts.same_text(view.kind, entry.output, text):
                    system, inputs = view.system_sha256, view.inputs(name)
                    self.entries[name] = replace(entry, system_sha256=system, inputs=inputs)
                    break
            else:
                self.entries[name] = self._hand_entry(name)
            texts_gone = [entry for entry in entries if entry.output not in {"", text}]
            history += [self.keep_entry(entry, "adopted") for entry in texts_gone]
        hand = ledgers.hand_name(view.place)
        self._dropped += [hand] if hand in view.ledger.broken else []
        return self._done(names, history)

    def _hand_entry(self, name: str) -> Entry:
        """Return the entry of a text that a person wrote, for what it is for at this moment.

        Where the person edited a model's text, it says whose that was.
        """
        old = self.view.entry(name)
        after = old.after if old else None
        if old is not None and not old.is_by_hand:
            after = {"model": old.model, "prompt_sha256": old.prompt_sha256}
        return Entry(name, own_inputs=(self.view.own_hash(name),), after=after)

    def rebuild(self, names: Sequence[str] | None) -> Changes:
        """Put recorded texts back into the file; what stands there goes to the history.

        Texts that a person wrote stay as they are. A file with conflict markers of git is written
        as our side has it, with every recorded text; as it was, it goes to the history.
        """
        view = self.view
        if names == []:
            return Changes(())
        # An entry that git could not join is ours again; theirs goes to the history.
        torn = view.ledger.conflicts()
        entries = {**view.ledger.entries, **{name: ours for name, (ours, _) in torn.items()}}
        for name in names or ():
            refuse_unknown(view, name, entries)
            # Such an entry has no text, because a person's stands in the file alone.
            if entries[name].is_by_hand and not entries[name].output:
                raise UsageError(
                    f"nothing is recorded that {name!r:.80} could be rebuilt from",
                    why="a person wrote it, and only the file has a person's text",
                    hint=command("history", view.here, name),
                )
        base, before, all_names = view.text, view.texts, view.names
        history: list[str] = []
        if view.has_conflict and not names:
            # As if nothing stood there, because each side has texts that the other one lacks.
            base, before = texts.sides(view.text)[0], {}
            all_names = (*all_names, *texts.texts_or_none(view.kind, base))
            # Never ``.json``: what ends like that is read as the text of one unit.
            history.append(f"{new_id()}-{view.path.name}.kept")
            self._kept[history[0]] = view.data or b""
        else:
            self._readable()
        recorded = [name for name in dict.fromkeys(all_names) if name in entries]
        by_hand = [name for name in recorded if entries[name].is_by_hand]
        chosen = names or [name for name in recorded if name not in by_hand]
        for name in sorted(torn.keys() & {*chosen, *([] if names else by_hand)}):
            ours, theirs = torn[name]
            self.entries[name] = ours
            history += [self.keep_entry(theirs, "dropped")] if theirs.output else []
        changed: dict[str, str] = {}
        for name in chosen:
            stands, text = before.get(name), entries[name].output
            if stands is None or not texts.same_text(view.kind, text, stands.text):
                changed[name] = text
                history += [self.keep_text(name, stands.text, "dropped")] if stands else []
        self.text = texts.put_texts(view.kind, base, changed, view.names, view.place)
        return self._done(changed, history, by_hand=len(by_hand))

    def forget(self, names: Sequence[str] | None) -> Changes:
        """Drop what nothing asks for: entries of the ledger, and texts where the region can."""
        view = self._readable()
        every = dict.fromkeys((*view.names, *view.texts, *view.ledger.entries))
        for name in names or ():
            refuse_unknown(view, name, every)
        chosen = names or [name for name in every if name not in view.names]
        unasked = [name for name in chosen if name in view.texts and name not in view.names]
        history = []
        for name in chosen:
            entry = view.entry(name)
            if entry is not None:
                self.entries[name] = None
                history += [self.keep_entry(entry, "forgotten")] if entry.output else []
            text = view.texts[name].text if name in unasked else ""
            if text and (entry is None or text != entry.output):
                history.append(self.keep_text(name, text, "forgotten"))
        remove: Any = getattr(view.kind.region, "remove", None)
        notes = [f"take {name!r} out of {view.place} by hand" for name in unasked if not remove]
        if unasked and remove:
            take_out = partial(remove, self.text, unasked)
            self.text = str(texts.call_region(view.kind, "remove", take_out, view.place))
        # Not where units are named, because ``forget`` never drops what it was not told of.
        dropped = view.unasked_files if names is None else ()
        self._dropped += dropped
        return self._done(chosen, history, notes=tuple(notes), dropped=dropped)

    def restore(self, name: str, page: int | None, to: str | None) -> Changes:
        """Make a text from the history the recorded one; what it replaces goes to the history."""
        view = self._readable()
        if page not in {None, 1}:
            raise UnknownPageError(f"{name} has no page {page}", hint="it has one page, 1")
        past = ledgers.read_history(view.files, view.ledger.place)
        chosen = [text for text in past if text.entry.name == name]
        if to is not None:
            chosen = [text for text in chosen if text.id == to.removesuffix(".json")]
        else:
            # The same text once more, because it was recorded again, would change nothing.
            chosen = [text for text in chosen if text.entry.output != view.output(name, 1)]
            # What was rejected or brought back was never, or is no longer, what is wanted back.
            ended = {"replaced", "adopted", "forgotten"}
            chosen = [text for text in chosen if text.reason in ended] or chosen
        if not chosen:
            called = f"text of {name!r} called {to}" if to else f"other text of {name!r}"
            raise UsageError(
                f"the history of {view.place} has no {called}",
                hint=command("history", view.here),
            )
        if error := view.hand_edit(name, why="restoring another text would discard the edit"):
            raise error
        entry, stands = chosen[-1].entry, view.texts.get(name)
        history = [self.keep_text(name, stands.text, "restored")] if stands else []
        new = {name: entry.output}
        self.text = texts.put_texts(view.kind, self.text, new, view.names, view.place)
        # One that was never recorded is made from what there is now.
        self.entries[name] = self._hand_entry(name) if entry.is_by_hand else entry
        return self._done([name], history, pages=(Written(name, 1, entry.model),))

    def enclose(self, names: Sequence[str]) -> tuple[str, ...]:
        """Put markers around texts that stand in a file without them; return whose they are.

        A region without ``enclose_all`` leaves the file as it is.
        """
        view = self._readable()
        bare = [name for name in dict.fromkeys(names) if name not in view.texts]
        enclose_all: Any = getattr(view.kind.region, "enclose_all", None)
        if enclose_all and bare:  # Because a file of hundreds of them is read once then.
            call = partial(enclose_all, view.text, bare)
            self.text = texts.call_region(view.kind, "enclose_all", call, view.place)
        self.commit()
        return tuple(bare)

    def _done(self, names: Iterable[str], history: Iterable[str], **more: Any) -> Changes:
        """Write everything; return what was done."""
        self.commit()
        diff = source_diff(self.view.text, self.text, self.view.place)
        return Changes(tuple(names), tuple(history), diff, **more)

    def _readable(self) -> FileUnits:
        """Return the view; raise where the file cannot be split into its units."""
        view, fault = self.view, self.view.fault
        if fault is None:
            return view
        if view.has_conflict:
            raise _conflict_error(view)
        message = fault.message
        raise SourceError(
            message if message.startswith(view.place) else f"{view.place}: {message}",
            why=fault.detail or "",
            hint="correct the file",
        )


def _conflict_error(view: FileUnits) -> SourceError:
    hint = "take one side, or both, in an editor; or "
    hint += f"{command('rebuild', view.here)}, which takes ours with every recorded text"
    return SourceError(
        f"{view.place} holds conflict markers of git",
        why="the file is two versions of itself",
        hint=hint,
    )
