"""The law that no kind can break, because the engine keeps it alike for all: kills at any write.

A store is held against the laws of files, but for what it has no ledger for.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, Final

import pytest

from pytest_regen.files import observe_effects
from pytest_regen.regeneration import verbs
from pytest_regen.sources.boundaries import extract_type_block, replace_type_block
from pytest_regen.store_folders import is_store
from pytest_regen.testing import KindConformance
from pytest_regen.testing.conformance import Lab
from pytest_regen.units import loading
from pytest_regen.units.kind import Kind
from pytest_regen.units.ledger import entry_name

EFFORTS: Final[Mapping[str, Callable[[Lab], object]]] = {
    "heal": lambda lab: lab.ask(verbs.heal_steps),
    "generate": lambda lab: lab.ask(verbs.generate_steps, force=True),
    "adopt": lambda lab: verbs.adopt(lab.file(), [lab.examples[0][0]]),
}
"""What is killed; each may be done again."""


class KilledKindConformance(KindConformance):
    """The laws of kinds, and that of the engine."""

    kill_every: ClassVar[int] = 1
    """Kill at each write; a higher number takes a sample."""

    @pytest.fixture(autouse=True)
    def _installed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Look for installed kinds once, because a law opens its project hundreds of times."""
        monkeypatch.setattr(loading, "entry_points", cache(entry_points))

    def test_a_kill_at_any_write_leaves_the_old_or_the_new(self, lab: Lab, tmp_path: Path) -> None:
        """Whatever was left loads, and the work can be done again."""
        if not hasattr(os, "fork"):
            pytest.skip("the system cannot fork")
        # One unit, because each write of each of them would only be killed again.
        lab = replace(lab, examples=lab.examples[:1])
        before = {effort: prepare(lab.copy(tmp_path / effort), effort) for effort in EFFORTS}

        facts = [type(lab).__name__, str(tmp_path), lab.place, json.dumps(lab.examples)]
        run = subprocess.run(
            [sys.executable, __file__, *facts, str(self.kill_every)],
            cwd=lab.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

        assert run.returncode == 0, run.stdout + run.stderr
        name, good, bad = lab.examples[0]
        for effort, killed in json.loads(run.stdout).items():
            after = bad if effort == "adopt" else good
            assert len(killed) > 1, f"{effort}: nothing was written"
            for folder, effect in killed:
                copy, case = replace(lab, root=Path(folder)), f"{effort}, killed {effect}"
                codes = set(copy.codes(name))
                is_new = lab.same(copy.text(name), after) and "DRIFT" not in codes
                assert is_new or codes == before[effort], f"{case}: {codes}"
                files = copy.files().keys() ^ lab.files().keys()
                assert files <= {lab.place}, f"{case}: {files}"
                EFFORTS[effort](copy)
                assert lab.same(copy.text(name), after), case


class StoreLab(Lab):
    """A project with a store of types, each of one page."""

    @property
    def path(self) -> Path:
        """The file that people read."""
        return Path(self.root, self.file().file_name)

    def stores(self) -> list[Path]:
        """Return all stores."""
        return [path for path in sorted(self.root.rglob("*")) if is_store(path)]

    def text(self, name: str) -> str:
        """Return the code of a type."""
        return extract_type_block(self.file().open().text, name) or ""

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts are the same code."""
        return old.split() == new.split()

    def with_text(self, name: str, text: str) -> str:
        """Return the source with other code for a type."""
        return replace_type_block(self.file().open().text, name, text)

    def files(self) -> dict[str, bytes]:
        """Return the project's files without what the store remembers."""
        source = self.path.relative_to(self.root).as_posix()
        return {
            name: data
            for name, data in super().files().items()
            if name == source or not name.startswith(f"{self.place}/")
        }


def take_out(lab: Lab) -> None:
    """Let the unit be missing: taken out where the kind still names it then, else a stub.

    It stays where it can be neither, and in a store, which has a text for each of its types.
    """
    if isinstance(lab, StoreLab):
        return
    view, name = lab.file().open(), lab.examples[0][0]
    is_named = type(view.kind).units is not Kind.units
    remove = getattr(view.kind.region, "remove", None) if is_named else None
    text = remove(view.text, [name]) if remove else lab.with_text(name, "")
    if isinstance(text, str):
        lab.path.write_bytes(text.encode("utf-8"))


def prepare(lab: Lab, effort: str) -> set[str]:
    """Leave work to do; return the codes of the unit before it is done."""
    name, _, bad = lab.examples[0]
    if effort == "generate":
        take_out(lab)
        (lab.root / entry_name(lab.place, name)).unlink(missing_ok=True)
    else:
        lab.put(bad, name)
    if effort == "heal":
        verbs.adopt(lab.file(), [name])
    return set(lab.codes(name))


def kill_at_writes(lab: Lab, effort: str, step: int) -> list[tuple[str, str]]:
    """Return copies in which the work was killed, each ``step`` writes later than the last.

    The last copy is one whose work was left alone.
    """
    seen: list[tuple[str, str]] = []
    while True:
        copy = lab.copy(lab.root.with_name(f"{effort}{len(seen)}"))
        note = copy.root.with_suffix(".effect")
        pid = os.fork()
        if not pid:
            work_and_die(copy, effort, note, step * len(seen))
        _, status = os.waitpid(pid, 0)
        if status not in {0, signal.SIGKILL}:
            raise AssertionError(f"the work ended with {status}")
        seen.append((str(copy.root), note.read_text("utf-8") if note.exists() else ""))
        if not note.exists():
            return seen


def work_and_die(lab: Lab, effort: str, note: Path, count: int) -> None:
    """Do the work in this process, and kill it after ``count`` writes; it never returns."""
    writes = iter(range(count, -1, -1))

    def observe(effect: str, path: Path) -> None:
        if effect.startswith("before") and next(writes) == 0:
            note.write_text(f"{effect} {path.name}", "utf-8")
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        with observe_effects(observe):
            EFFORTS[effort](lab)
    except BaseException as error:  # noqa: BLE001 - the parent counts it
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def main(kind_of_lab: str, space: str, place: str, examples: str, step: str) -> None:
    """Write which copies there are, as JSON."""
    killed = {}
    # Once, because each child would look through all that is installed.
    vars(loading)["entry_points"] = cache(entry_points)
    make = {"Lab": Lab, "StoreLab": StoreLab}[kind_of_lab]
    for effort in EFFORTS:
        lab = make(Path(space, effort), place, tuple(map(tuple, json.loads(examples))))
        lab.file().open()  # Imports once here, instead of in each child.
        killed[effort] = kill_at_writes(lab, effort, int(step))
    sys.stdout.write(json.dumps(killed))


if __name__ == "__main__":
    main(*sys.argv[1:])
