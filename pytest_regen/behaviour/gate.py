"""Runs the types of a source with instances of the document and says what they do wrong.

One process runs all types that are not known yet. A type is known while its own code and all code
that it names are as they were, and so are the instances and whatever runs them.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_regen.behaviour.findings import (
    Finding,
    findings_of_invalid,
    findings_of_valid,
    smallest,
    to_issue,
    value_at,
)
from pytest_regen.behaviour.same import ABSENT, prune
from pytest_regen.canonical import canonical_hash, canonical_json, text_hash
from pytest_regen.documents.ir import IR, TypeIR, referenced_names, type_hash, without_aliases
from pytest_regen.languages.base import Language
from pytest_regen.languages.runner import Answers, Question, Reply, RunFault, Runner
from pytest_regen.validation.issues import Issue

if TYPE_CHECKING:
    from pytest_regen.strategies import Instances

FORMAT: Final = 5
"""Of what is kept about a type; raised when the same replies are judged differently."""

_MAX_RUNS: Final = 8
"""Processes that are started because types keep others from being asked."""


@dataclass(frozen=True, slots=True)
class Block:
    """The code of one type in a source."""

    text: str
    first_line: int
    """Counts from 1."""

    @property
    def last_line(self) -> int:
        """The last line of the code."""
        return self.first_line + self.text.count("\n")


@dataclass(frozen=True)
class Subject:
    """A source that is to be run, and what it is to be held against."""

    ir: IR
    language: Language
    profile: str
    folder: Path
    """Of the store."""
    source: str
    blocks: Mapping[str, Block]
    """By name of a type."""
    broken: frozenset[str]
    """Types whose code would keep the others from being run; it is left out."""

    @cached_property
    def types(self) -> Mapping[str, TypeIR]:
        """The types by name."""
        return without_aliases(self.ir.types)

    @cached_property
    def reach(self) -> Mapping[str, frozenset[str]]:
        """Name of a type to the types that its code names, directly or not; and itself."""
        # By words, because each language has its own ways to name a type.
        names = frozenset(self.blocks)
        direct = {name: _words(block.text) & names for name, block in self.blocks.items()}
        reach: dict[str, frozenset[str]] = {}
        for name in self.blocks:
            seen, todo = {name}, [name]
            while todo:
                new = direct[todo.pop()] - seen
                seen |= new
                todo += new
            reach[name] = frozenset(seen)
        return reach

    @cached_property
    def runnable(self) -> tuple[str, ...]:
        """The types that can be asked: neither broken nor made of what is."""
        return tuple(
            name
            for name in self.types
            if name in self.blocks and not self.reach[name] & self.broken
        )

    @cached_property
    def outside(self) -> str:
        """The source without its blocks."""
        return self.code(())

    @cached_property
    def names_outside(self) -> frozenset[str]:
        """The types that the lines around the blocks name, comments aside."""
        comment = self.language.comment.open
        lines = (line.strip() for line in self.outside.split("\n"))
        text = "\n".join(line for line in lines if not line.startswith(comment))
        return _words(text) & self.blocks.keys()

    def code(self, names: Collection[str]) -> str:
        """Return the source with the blocks of other types blank; every line keeps its place."""
        # Blank lines stay, because messages of Python and compilers name lines of the file.
        lines = self.source.split("\n")
        for name, block in self.blocks.items():
            if name not in names:
                first = block.first_line - 1
                last = min(block.last_line, len(lines))
                lines[first:last] = [""] * (last - first)
        return "\n".join(lines)

    def type_at(self, line: int | None) -> str | None:
        """Return the type whose code stands on a line."""
        for name, block in self.blocks.items():
            if line is not None and block.first_line <= line <= block.last_line:
                return name
        return None


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What became of the types of a source when they were run."""

    issues: Mapping[str, tuple[Issue, ...]] = field(default_factory=dict)
    """By name of the type at fault; those without are left out."""
    asked: frozenset[str] = frozenset()
    """The types that answered, now or before with the same code."""
    why_not: Mapping[str, str] = field(default_factory=dict)
    """By name of a type: why there was nothing to ask it."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name of a type: what it is, where a run tells that; see ``Answers``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one type."""

    findings: tuple[Finding, ...] = ()
    why_not: str = ""
    """Why it was not asked."""
    facts: Mapping[str, Any] | None = None
    """What it is, where a run tells that."""
    is_tried: bool = True
    """Whether it was asked; else a type that it is made of kept it from that."""


@dataclass(frozen=True, slots=True)
class Known:
    """Verdicts by what they depend on: in memory, and wherever ``read`` and ``write`` lead."""

    read: Callable[[str], Any] = lambda _key: None
    write: Callable[[str, Any], object] = lambda _key, _value: None
    lock: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Held while types are run, so that of two processes with the same store one runs them."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def get(self, key: str) -> Verdict | None:
        """Return the verdict under a key; ``None`` where nothing is known."""
        if key not in self.verdicts and (data := self.read(key)) is not None:
            findings = tuple(map(Finding.from_json, data["findings"]))
            self.verdicts[key] = Verdict(**{**data, "findings": findings})
        return self.verdicts.get(key)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict."""
        self.verdicts[key] = verdict
        self.write(key, asdict(verdict))


Asked = Mapping[str, "Instances"]
"""Name of a type to its instances."""


def check(
    subject: Subject,
    runner: Runner,
    instances: Callable[[Sequence[str]], Asked],
    *,
    instances_key: str,
    known: Known,
) -> Behaviour:
    """Return what is wrong with how the types of a source load and dump JSON, and what they are.

    Args:
        subject: the source.
        runner: what runs it here.
        instances: returns the instances of types; called only for those that must be run.
        instances_key: differs where the instances do.
        known: what was found before.
    """
    # With the format, because what is kept was judged as its version judges.
    version = [FORMAT, runner.version(subject.folder), instances_key]
    # What a type is can be told though it is made of one that cannot be loaded.
    loadable = [name for name in subject.blocks if name not in subject.broken]
    names = loadable if runner.traits.complete is not None else subject.runnable
    # Without blank lines, because there are as many as the code of all types has.
    outside = text_hash("\n".join(filter(str.strip, subject.outside.split("\n"))))
    texts = {name: text_hash(block.text) for name, block in subject.blocks.items()}
    types = {name: type_hash(type_) for name, type_ in subject.types.items()}
    keys = {}
    for name in names:
        reached = sorted(subject.reach[name])
        parts = [(other, texts[other], types.get(other)) for other in reached]
        # With its name, because types that name one another depend on the same.
        keys[name] = canonical_hash([*version, subject.profile, outside, name, parts])
    verdicts = {name: verdict for name in names if (verdict := known.get(keys[name]))}
    if len(verdicts) < len(names):
        with known.lock():
            # Once more, because another process may have run them meanwhile.
            verdicts = {name: verdict for name in names if (verdict := known.get(keys[name]))}
            missing = [name for name in names if name not in verdicts]
            if missing:
                drawn = instances([name for name in missing if name in subject.types])
                new = _Run(subject, runner, drawn).verdicts(missing)
                for name, verdict in new.items():
                    # Not of the lines around, because their place is none of the key.
                    if not any(finding.kind == "outside" for finding in verdict.findings):
                        known.put(keys[name], verdict)
                verdicts |= new
    facts = {name: one.facts for name, one in verdicts.items() if one.facts is not None}
    unloaded = _unloaded(facts)
    findings = {name: one.findings for name, one in verdicts.items() if not one.why_not}
    why_not = {name: one.why_not for name, one in verdicts.items() if one.why_not}
    answered = frozenset(
        name
        for name, of_type in findings.items()
        if name in subject.runnable
        and verdicts[name].is_tried
        and not subject.reach[name] & unloaded
        and not any(finding.kind in {"fault", "outside"} for finding in of_type)
    )
    return Behaviour(_by_type(findings, subject), answered, why_not, facts)


def _unloaded(facts: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the types that a run could not load."""
    return {name for name, of_type in facts.items() if of_type.keys() & {"blocked", "fault"}}


# --- attribution ----------------------------------------------------------------------------------


def _by_type(
    findings: Mapping[str, Sequence[Finding]], subject: Subject
) -> dict[str, tuple[Issue, ...]]:
    """Return the issues of each type: a fault goes to the innermost type that shows it itself."""
    pairs = [(name, finding) for name, of_type in findings.items() for finding in of_type]
    keys = {(name, finding.key) for name, finding in pairs}
    reasons = {(name, finding.reason) for name, finding in pairs if finding.reason}
    refusing = {
        name for name, finding in pairs if finding.kind == "refused" and len(finding.steps) <= 1
    }
    placed: dict[str, list[Finding]] = {}
    for name, finding in pairs:
        inner = [step.type_name for step in finding.steps[1:]]
        if any((other, finding.key) in keys for other in inner if other != name):
            continue  # That type says so itself.
        if finding.kind == "refused" and finding.steps:
            last = finding.steps[-1]
            type_ = subject.types.get(last.type_name)
            fields = {field.json_name: field for field in type_.fields} if type_ else {}
            held = referenced_names(fields[last.field].type) if last.field in fields else ()
            # Of another type, because a type that holds itself would never be told.
            if refusing & {*held} - {last.type_name}:
                continue
        others = subject.reach[name] - {name}
        if not finding.steps and reasons & {(other, finding.reason) for other in others}:
            continue  # An inner type raises the same, with nothing to say where.
        # Where the inner type passes alone, the one around it spoils its values.
        home, steps = name, finding.steps[:1]
        if inner and inner[-1] == name:
            steps = finding.steps[-1:]
        elif inner and inner[-1] not in findings:
            home, steps = inner[-1], finding.steps
        placed.setdefault(home, []).append(replace(finding, steps=steps))
    return {
        name: tuple(
            to_issue(finding, subject.types[name], subject.blocks[name].first_line)
            for finding in smallest(of_type)
        )
        for name, of_type in placed.items()
        if name in subject.blocks and name in subject.types
    }


# --- running --------------------------------------------------------------------------------------


class _Run:
    """Processes that ask types of one source."""

    def __init__(self, subject: Subject, runner: Runner, instances: Asked) -> None:
        self._subject, self._runner = subject, runner
        self._instances = instances
        self._cases = {
            name: _Cases(subject, runner, name, drawn)
            for name, drawn in instances.items()
            if name in subject.types
        }
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._loaded: Sequence[str] = ()

    def verdicts(self, names: Sequence[str]) -> dict[str, Verdict]:
        """Return what is wrong with each type; those that could not be asked are left out."""
        reach = self._subject.reach
        # The others are not loaded, because that takes longer than all else where few are asked.
        needed = set().union(*(reach[name] for name in (*names, *self._subject.names_outside)))
        self._loaded = [name for name in reach if name in needed]
        runnable = [name for name in names if name in self._subject.runnable]
        asked = [name for name in runnable if name in self._cases and self._cases[name].has_any]
        replies, faulty = self._ask_all(asked)
        verdicts: dict[str, Verdict] = {}
        for name in names:
            facts = self._facts.get(name)
            findings = [faulty[name]] if name in faulty else []
            if name in replies:
                texts = facts.get("texts", ()) if facts else ()
                findings += smallest(
                    finding
                    for finding in self._cases[name].judge(replies[name])
                    if finding.keyword != "format" or finding.steps[-1].field not in texts
                )
            if name not in asked:
                drawn = self._instances.get(name)
                reasons = [skipped.reason for skipped in drawn.skipped] if drawn else []
                why = next(iter(reasons), "") or "no instance of it could be drawn"
                why_not = why if name in runnable and not findings else ""
                verdicts[name] = Verdict(tuple(findings), why_not, facts)
            elif findings or name in replies:
                verdicts[name] = Verdict(tuple(findings), facts=facts)
            elif facts is not None:
                verdicts[name] = Verdict(facts=facts, is_tried=False)
        return verdicts

    def _ask_all(
        self, names: Sequence[str]
    ) -> tuple[dict[str, tuple[Reply, ...]], dict[str, Finding]]:
        """Return the replies of each type, and why types have none.

        A type that ends or stops the process, or does not let the source load, is left out of the
        next one, until all others have answered.
        """
        subject, reach = self._subject, self._subject.reach
        replies: dict[str, tuple[Reply, ...]] = {}
        faulty: dict[str, Finding] = {}
        # Inner types first: where one of them is at fault, those around it are not asked.
        names = sorted(names, key=lambda name: len(reach[name]))
        for attempt in range(_MAX_RUNS):
            left_out = subject.broken | faulty.keys()
            unasked = faulty.keys() | _unloaded(self._facts)
            open_ = [name for name in names if name not in replies and not reach[name] & unasked]
            is_first = self._runner.traits.complete is not None and not attempt
            if not open_ and not is_first:
                break
            code = subject.code([name for name in self._loaded if not reach[name] & left_out])
            answers = self._run(code, [self._cases[name].question for name in open_])
            replies |= {name: answers.replies[name] for name in open_ if name in answers.replies}
            is_silent = not answers.replies and not answers.facts
            new: dict[str, Finding] = {}
            for fault in answers.faults:
                place = fault.type_name or subject.type_at(fault.line)
                if place is not None:
                    new.setdefault(place, self._fault(fault, place))
            # First by its line, because to run the lines around the types alone costs a process.
            around = next((fault for fault in answers.faults if fault.line), None)
            if not new and around is None and is_silent and not subject.names_outside:
                around = next(iter(self._run(subject.outside, ()).faults), None)
            if not new and around is not None:
                # None of the types fails but what stands around them. That is said once, always on
                # the same type; and not at all where it only misses a type that was left out.
                if subject.names_outside & left_out:
                    break
                outside = Finding.of_fault(around, None)
                return replies, faulty | {next(iter(subject.blocks)): outside}
            if not new and is_silent:
                loadable = [name for name in self._loaded if not reach[name] & subject.broken]
                new = self._find_culprits(open_ or loadable, replies)
            if not new.keys() - faulty.keys() and is_silent:
                break
            faulty |= new
        return replies, faulty

    def _run(self, code: str, questions: Sequence[Question]) -> Answers:
        blocks = {
            name: (block.first_line, block.last_line)
            for name, block in self._subject.blocks.items()
            if name in self._loaded
        }
        answers = self._runner.run(code, questions, self._subject.folder, blocks)
        # The first to be told counts, because later runs leave types out that others are made of.
        self._facts = {**answers.facts, **self._facts}
        return answers

    def _fault(self, fault: RunFault, name: str) -> Finding:
        """Return the finding for a fault; its line counts in the code of the type."""
        line = fault.line if self._subject.type_at(fault.line) == name else None
        first = self._subject.blocks[name].first_line
        return Finding.of_fault(replace(fault, line=line and line - first + 1), name)

    def _find_culprits(
        self, names: Sequence[str], replies: dict[str, tuple[Reply, ...]]
    ) -> dict[str, Finding]:
        """Return the types that cannot be loaded although only they, and what they name, are there.

        For a source that does not load and does not say where. What answers on the way is put in
        ``replies``.
        """
        faulty: dict[str, Finding] = {}
        reach = self._subject.reach
        for name in sorted(names, key=lambda name: len(reach[name])):
            if reach[name] & faulty.keys():
                continue
            cases = self._cases.get(name)
            questions = [cases.question] if cases is not None and cases.has_any else []
            answers = self._run(self._subject.code(reach[name]), questions)
            if name in answers.replies:
                replies[name] = answers.replies[name]
            elif answers.faults:
                faulty[name] = self._fault(answers.faults[0], name)
                if len(faulty) >= _MAX_RUNS:
                    break
        return faulty


class _Cases:
    """The instances of one type, valid and invalid ones mixed."""

    def __init__(self, subject: Subject, runner: Runner, name: str, drawn: "Instances") -> None:
        self._types, self._traits = subject.types, runner.traits
        self._type = subject.types[name]
        names = subject.language.member_names(self._type)
        is_enum = self._type.kind == "enum"
        members = {} if is_enum else {str(name): member for name, member in names.items()}
        self._valid = [self._taken(value) for value in drawn.valid if self._can_hold(value)]
        self._invalid = []
        for violation in drawn.invalid:
            place, wrong = violation.path, value_at(violation.instance, violation.path)
            wrong = None if wrong is ABSENT else wrong
            is_refused = runner.refuses(self._type, violation.keyword, place, wrong)
            if is_refused and self._can_hold(violation.instance):
                self._invalid.append(violation)
        texts = [canonical_json(value) for value in self._valid]
        texts += [canonical_json(self._taken(wrong.instance)) for wrong in self._invalid]
        # In an order that gives nothing away: what takes anything takes the wrong ones, too.
        self._order = sorted(range(len(texts)), key=lambda at: text_hash(texts[at]))
        self.question = Question(self._type, members, tuple(texts[at] for at in self._order))

    def _can_hold(self, value: Any) -> bool:
        """Return whether right code can hold an instance."""
        from pytest_regen.strategies.dialects import has_format

        formats, largest = self._traits.partial_formats, self._traits.largest_integer
        for leaf in _leaves(value):
            if isinstance(leaf, str) and any(has_format(leaf, name) for name in formats):
                return False
            is_number = isinstance(leaf, int | float) and not isinstance(leaf, bool)
            if largest is not None and is_number and abs(leaf) > largest and leaf == int(leaf):
                return False
        return True

    def _taken(self, value: Any) -> Any:
        """Return an instance as the code takes it."""
        return value if self._traits.takes_more else prune(value, self._type, self._types)

    @property
    def has_any(self) -> bool:
        """Whether there is a valid instance to ask about."""
        return bool(self._valid)

    def judge(self, replies: Sequence[Reply]) -> Iterator[Finding]:
        """Yield what is wrong with the replies to ``question``."""
        by_place = dict(zip(self._order, replies, strict=True))
        in_order, count = [by_place[at] for at in range(len(by_place))], len(self._valid)
        valid = in_order[:count]
        yield from findings_of_valid(self.question, self._valid, valid, self._types, self._traits)
        yield from findings_of_invalid(self._type, self._invalid, in_order[count:], self._types)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield all plain values in a JSON value."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value
