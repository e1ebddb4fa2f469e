"""One suite that holds every kind against the laws of the engine.

Subclass it, name the kind, and pytest collects a test per law::

    class TestPatterns(KindConformance):
        kind = "regen_kinds:Patterns"

Each test works on a copy of the project, in which the units of ``Kind.examples`` are as a model
wrote them.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from pytest_regen.emulator import Emulator
from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.places import open_place, places_in
from pytest_regen.regeneration.queue import Flow, drive_flow
from pytest_regen.regeneration.values import Ask, TurnSettings
from pytest_regen.settings import read_settings
from pytest_regen.turns.providers import CallableProvider
from pytest_regen.units.kind import Example, Kind
from pytest_regen.units.loading import ProjectKinds, load_kinds
from pytest_regen.units.naming import unit_id
from pytest_regen.units.texts import put_text, same_text

_LEFT_OUT: Final = (*("__pycache__", "build", "cassettes", "dist", "env", "node_modules", "venv"),)
_MEMORY: Final = frozenset({".regen", ".pytest_cache", "cassettes", "__pycache__"})
"""What a run remembers, which is not the same after another way to the same texts."""
_MODEL: Final = "conformance"


@dataclass(frozen=True)
class Lab:
    """A project in which one place holds the units of the examples."""

    root: Path
    place: str
    examples: tuple[Example, ...]

    @property
    def path(self) -> Path:
        """The file that people read."""
        return self.root / self.place

    @property
    def kinds(self) -> ProjectKinds:
        """The kinds, made anew."""
        return load_kinds(self.root, read_settings(self.root))

    def ignored_codes(self, _id: str) -> frozenset[str]:
        """Return none."""
        return frozenset()

    def stores(self) -> list[Path]:
        """Return none: types of an API are no kind of the project's own."""
        return []

    def file(self) -> Any:
        """Return the file with its kind, made anew."""
        return open_place(self, self.root / self.place)

    def codes(self, name: str) -> list[str]:
        """Return the codes of what is wrong with a unit, in order, but for its own warnings."""
        return [
            issue.code
            for issue in self.file().open().issues(name)
            if issue.severity == "error" or issue.code in {"STALE", "UNRECORDED"}
        ]

    def text(self, name: str) -> str:
        """Return what stands in the file for a unit."""
        return self.file().open().output(name, 1) or ""

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts of a unit mean the same."""
        return same_text(self.file().kind, old, new)

    def with_text(self, name: str, text: str) -> Any:
        """Return the file's text with another text for a unit, or why it cannot stand there."""
        view = self.file().open()
        return put_text(view.kind, view.text, name, text, list(view.names), place=self.place)

    def put(self, text: str, name: str) -> None:
        """Edit a unit as somebody would."""
        edited = self.with_text(name, text)
        assert isinstance(edited, str), f"{name} cannot hold this text: {edited.message}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(edited.encode("utf-8"))

    def asks(self) -> list[Ask]:
        """Return what is asked for each unit."""
        place, settings = self.file(), TurnSettings(CallableProvider(str, model=_MODEL))
        view, names = place.open(), [name for name, *_ in self.examples]
        return [ask for name in names for ask in place.asks(view, name, {1: ()}, settings)]

    def learn(self) -> Callable[[Sequence[Mapping[str, Any]]], str]:
        """Return a model that answers messages with the good texts."""
        replies: dict[str, str] = {}
        for (_, text, _), ask in zip(self.examples, self.asks(), strict=True):
            # As it is, in a fence, or as JSON, because a kind reads replies in a way of its own.
            for reply in (text, f"````\n{text}\n````", json.dumps(text)):
                if self.same(ask.extract([reply]), text):
                    replies[json.dumps(ask.request.messages[-1].content)[1:-1]] = reply
                    break
            else:
                read = ask.extract([text])
                raise AssertionError(f"no reply gives the text {text!r}: extract gives {read!r}")

        def model(messages: Sequence[Mapping[str, Any]]) -> str:
            # As JSON, because the emulator has it in blocks; the longest, because one prompt may
            # hold another.
            sent = json.dumps(messages[-1]["content"])
            return replies[max((user for user in replies if user in sent), key=len)]

        return model

    def ask(self, steps: Callable[..., Flow[Any]], **options: Any) -> None:
        """Let the engine work on the examples, by a verb; each is answered with its good text."""
        settings = TurnSettings(CallableProvider(self.learn(), model=_MODEL))
        names = [name for name, *_ in self.examples]
        drive_flow(steps(self.file(), names, settings=settings, attempts=1, **options), settings)

    def files(self) -> dict[str, bytes]:
        """Return the project's files, but for what a run remembers."""
        names = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        inputs = [name for name in names if _MEMORY.isdisjoint(name.parts)]
        return {name.as_posix(): Path(self.root, name).read_bytes() for name in inputs}

    def copy(self, root: Path) -> "Lab":
        """Return a copy."""
        shutil.copytree(self.root, root)
        return replace(self, root=root)

    def pytest(self, *options: str, url: str) -> str:
        """Run pytest on the units: outside CI, without a key, with no plugin but ours."""
        theirs = ("ANTHROPIC_", "CI", "PYTEST_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        env |= {"ANTHROPIC_API_KEY": "none-needed", "ANTHROPIC_BASE_URL": url}
        env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NO_COLOR": "1", "COLUMNS": "200"}
        plugins = ("-p", "pytest_regen.pytest_plugin.plugin", "-p", "no:cacheprovider")
        ids = [unit_id(self.place, name) for name, *_ in self.examples]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, "-q", *options, *ids],
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return run.stdout + run.stderr


class KindConformance:
    """Holds a kind against the laws of the engine; subclass it and set ``kind``."""

    kind: ClassVar[str | type[Kind]]
    """``module:Class``, importable from the root of the project, or the class itself."""

    examples: ClassVar[Sequence[Example] | None] = None
    """Name, good text and bad text of some units; by default those of the kind."""

    settings: ClassVar[str] = ""
    """``[tool.pytest-regen]`` for the copy, as TOML; by default it names the kind."""

    @pytest.fixture
    def lab(self, request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
        """A copy of the project, with the units of the examples as a model wrote them."""
        root, kind = tmp_path / "project", self.kind
        root.mkdir()
        self.make_project(root, request.config.rootpath)
        reference = kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}"
        settings = self.settings or f'[tool.pytest-regen]\nkinds = ["{reference}"]\n'
        (root / "pyproject.toml").write_text(settings, "utf-8")
        names: list[str] = []
        place: Any
        for place in places_in(Lab(root, "", ())):
            units = place.open().names
            examples = self.examples or place.kind.examples
            lab = Lab(root, place.place, tuple(e for e in examples if e[0] in units))
            if lab.examples:
                break
            names += units
        else:
            pytest.fail(
                "no file has a unit of the examples: the kind's units are "
                f"{', '.join(names[:8]) or 'none'}; "
                'set examples = [("name of a unit", "good text", "bad text")]',
                pytrace=False,
            )
        for name, good, _ in lab.examples:
            lab.put(good, name)
        # Of all that stands there, because nothing but the examples is to be looked at later.
        verbs.adopt(lab.file())
        lab.ask(verbs.generate_steps, force=True)
        return lab

    def make_project(self, root: Path, rootdir: Path) -> None:
        """Fill the empty folder ``root`` with what the kind needs, by default with the rootdir.

        Folders that hold no input of a kind are left out.
        """
        ignore = shutil.ignore_patterns(".*", *_LEFT_OUT)
        shutil.copytree(rootdir, root, ignore=ignore, symlinks=True, dirs_exist_ok=True)

    # What the kind itself owes

    def test_good_texts_pass_and_bad_ones_fail(self, lab: Lab) -> None:
        """``check`` accepts what is right, refuses what is wrong, and says the same each time."""
        for name, good, bad in lab.examples:
            lab.put(good, name)
            assert lab.codes(name) in ([], ["DRIFT"]), f"{name}: the good text fails"
            lab.put(bad, name)
            assert set(lab.codes(name)) - {"DRIFT"}, f"{name}: the bad text passes"
            file = lab.file()
            first, second = (file.open().issues(name) for _ in range(2))
            assert first == second, f"{name}: check is not stable"

    def test_a_text_comes_back_as_it_was_put_in(self, lab: Lab) -> None:
        """The region finds what it wrote, and leaves every other byte alone."""
        before = lab.path.read_bytes()
        for name, good, bad in lab.examples:
            for text in (bad, good):
                lab.put(text, name)
                assert lab.same(lab.text(name), text)
        assert lab.path.read_bytes() == before

    def test_an_answer_is_no_input(self, lab: Lab) -> None:
        """What is asked and what it was made from do not depend on the answer."""
        before = [(ask.request, ask.entry) for ask in lab.asks()]
        for name, _, bad in lab.examples:
            lab.put(bad, name)
        assert [(ask.request, ask.entry) for ask in lab.asks()] == before

    # What the engine owes the kind

    def test_pytest_heals_and_replays_offline_with_workers(
        self, lab: Lab, pytestconfig: pytest.Config
    ) -> None:
        """``--regen`` heals what fails, and does so again from its recording, without a model."""
        for name, _, bad in lab.examples:
            lab.put(bad, name)
        verbs.adopt(lab.file())
        broken, model = lab.copy(lab.root.with_name("broken")), lab.learn()
        summary = f"{len(lab.examples)} regenerated"

        with Emulator(lambda body: model(body["messages"])) as emulator:
            url = emulator.base_url
            healed = lab.pytest("--regen", "--regen-record", "once", url=url)

        assert summary in healed, healed
        assert all(lab.codes(name) == [] for name, *_ in lab.examples)

        shutil.copytree(lab.root / "cassettes", broken.root / "cassettes")
        has_workers = pytestconfig.pluginmanager.has_plugin("xdist")
        workers = ("-p", "xdist.plugin", "-n", "2") if has_workers else ()
        replayed = broken.pytest("--regen", *workers, url=url)

        assert summary in replayed, replayed
        assert broken.files() == lab.files()
