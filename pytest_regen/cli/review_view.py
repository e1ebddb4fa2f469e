"""The review at a terminal: one candidate after the other, and a key for each."""

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from pytest_regen.cli.desk import Desk, candidate_facts, following, stored_diff
from pytest_regen.cli.output import console, fact, fail, next_step, say
from pytest_regen.errors import RegenError
from pytest_regen.regeneration.pending import Candidate
from pytest_regen.text import plural, visible

if TYPE_CHECKING:
    from pytest_regen.regeneration.review import Look
    from pytest_regen.validation.issues import Issue

Decision = Literal["a", "r", "s", "A", "R", "d", "q"]

_KEYS: Final[dict[Decision, str]] = {
    "a": "accept",
    "r": "reject",
    "s": "skip",
    "d": "whole diff",
    "A": "accept all",
    "R": "reject all",
    "q": "quit",
}
_AROUND: Final = 12
"""Lines of a screen that are not the diff's."""
_LEAST: Final = 10
"""Lines of a diff that are shown on the smallest screen."""
_LABEL: Final = 12
"""Columns of what a fact is called."""
_ISSUES: Final = 4
"""Issues that are shown before the rest is counted."""
_POLL: Final = 0.2
"""Seconds between two looks at the size of the terminal."""


def review_each(desk: Desk, candidates: Sequence[Candidate]) -> int:
    """Show each candidate and do what the user says; return the exit code: 1 while any waits."""
    accepted: list[Candidate] = []
    rejected = 0
    for_all = ""
    with _keys() as keys:
        for number, candidate in enumerate(candidates, 1):
            decision = for_all or _decide(desk, candidate, f"{number} of {len(candidates)}", keys)
            if decision in {"A", "R"}:
                for_all = decision
            if decision == "q":
                break
            try:
                if decision in {"a", "A"}:
                    desk.accept(candidate)
                    accepted.append(candidate)
                    fact("accepted", desk.name_of(candidate), "green")
                elif decision in {"r", "R"}:
                    desk.reject(candidate)
                    rejected += 1
                    fact("rejected", desk.name_of(candidate), "yellow")
            except RegenError as error:
                fail(error.what, why=error.why, hint=error.hint)
    waiting = desk.folder.read()
    counts = {"accepted": len(accepted), "rejected": rejected, "left": len(waiting.candidates)}
    say(", ".join(f"{count:,} {word}" for word, count in counts.items()))
    next_step(following(desk, accepted))
    return int(bool(waiting.candidates or waiting.faults))


def _decide(desk: Desk, candidate: Candidate, count: str, keys: "_Keys") -> str:
    """Show a candidate until a key says what becomes of it."""
    view = _View(desk, candidate, count)
    is_whole = False
    while True:
        size = console().size  # before it is shown: another size meanwhile counts
        view.show(is_whole=is_whole)
        key = keys.wait(view.offered, size)
        if key is not None and key != "d":
            return key
        # Another size of the terminal, or the whole diff, is a reason to show it again.
        is_whole = is_whole or key == "d"


class _View:
    """One candidate on the screen."""

    def __init__(self, desk: Desk, candidate: Candidate, count: str) -> None:
        self._name = desk.name_of(candidate)
        self._candidate = candidate
        self._count = count
        self._is_cut = False
        self._look: Look[Any] | None = None
        self._obstacle: RegenError | None = None
        try:
            self._look = desk.look(candidate)
        except RegenError as error:
            self._obstacle = error

    @property
    def offered(self) -> Sequence[Decision]:
        """The keys that do something."""
        idle: set[Decision] = set() if self._is_cut else {"d"}
        if self._look is None:
            idle |= {"a", "A"}
        return [key for key in _KEYS if key not in idle]

    def show(self, *, is_whole: bool) -> None:
        """Print the candidate as wide as the terminal is now."""
        out, candidate = console(), self._candidate
        out.print()
        out.print(Rule(Text(visible(f"{self._count}  {self._name}  {candidate.id}"))))
        for label, text in candidate_facts(candidate):
            self._fact(label, text)
        self._issues("was wrong", candidate.issues_before)
        for note in candidate.feedback:
            self._fact("test said", note.partition("\n")[0], "red")
        self._diff(is_whole=is_whole)
        left = candidate.issues_after if self._look is None else self._look.issues
        self._issues("with it", left)
        if not left:
            self._fact("with it", "nothing is wrong", "green")
        if self._obstacle is not None:
            self._fact("not now", f"{self._obstacle.what}: {self._obstacle.why}", "yellow")
        self._bar()

    def _bar(self) -> None:
        """Print the keys, in lines that are broken between two of them."""
        bars = [Text(" ")]
        for key in self.offered:
            words = Text().append(f" {key} ", "reverse").append(f" {_KEYS[key]} ")
            if bars[-1].cell_len + words.cell_len > console().size.width:
                bars.append(Text(" "))
            bars[-1].append_text(words)
        for bar in bars:
            console().print(bar)

    def _fact(self, label: str, text: str, style: str = "") -> None:
        """Print a fact whose further lines stand below its first one."""
        row = Table.grid(padding=(0, 1))
        row.add_column(width=_LABEL, no_wrap=True)
        row.add_column(overflow="fold")
        row.add_row(Text(f"  {label}", "bold"), Text(visible(text), style))
        console().print(row)

    def _issues(self, label: str, issues: "Sequence[Issue]") -> None:
        for issue in issues[:_ISSUES]:
            is_error = issue.severity == "error"
            mark = "" if is_error else "warning: "
            self._fact(
                label, f"{mark}[{issue.code}] {issue.message}", "red" if is_error else "yellow"
            )
        if len(issues) > _ISSUES:
            self._fact(label, f"{len(issues) - _ISSUES:,} more")

    def _diff(self, *, is_whole: bool) -> None:
        out = console()
        diff = stored_diff(self._candidate) if self._look is None else self._look.diff
        lines = [visible(line) for line in diff.splitlines()]
        room = max(_LEAST, out.size.height - _AROUND)
        shown = lines if is_whole else lines[:room]
        self._is_cut = len(shown) < len(lines)
        out.print(
            Syntax(
                "\n".join(shown),
                "diff",
                theme="ansi_dark",
                background_color="default",
                word_wrap=True,
            )
        )
        if self._is_cut:
            self._fact("", f"{plural(len(lines) - len(shown), 'more line')}: d shows all")


class _Keys:
    """Keys as they are pressed."""

    def __init__(self) -> None:
        self._pressed: deque[str] = deque()

    def wait(self, offered: Sequence[str], size: tuple[int, int]) -> str | None:
        """Return the next key that is offered; ``None`` once the terminal has another size."""
        while True:
            while self._pressed:
                key = self._pressed.popleft()
                if key == "\x03":
                    raise KeyboardInterrupt
                if key in offered:
                    return key
            text = self._read()
            if text == "":
                return "q"  # The terminal is gone.
            self._pressed += text or ""
            if text is None and console().size != size:
                return None

    def _read(self) -> str | None:
        """Return what was typed; ``None`` where nothing was for a moment."""
        if os.name == "nt":
            import typer

            return str(typer.getchar())
        import select

        ready, _, _ = select.select([sys.stdin], [], [], _POLL)
        return os.read(sys.stdin.fileno(), 64).decode("utf-8", "replace") if ready else None


@contextmanager
def _keys() -> Iterator[_Keys]:
    """Yield the keys, each as soon as it is pressed; the terminal is as it was afterwards."""
    if os.name == "nt":
        yield _Keys()
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSADRAIN)
    try:
        yield _Keys()
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
