"""One suite that holds every kind, and stores of types, against the laws of the engine.

Subclass it, name the kind, and pytest collects a test per law::

    class TestPatterns(KindConformance):
        kind = "regen_kinds:Patterns"

Each test works on a copy of the project, in which the units of ``Kind.examples`` are as a model
wrote them.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final

import pytest

from pytest_regen.emulator import Emulator
from pytest_regen.modes import HAND
from pytest_regen.regeneration import verbs
from pytest_regen.regeneration.flow import Job, Work, work_steps
from pytest_regen.regeneration.places import Place, open_place, places_in
from pytest_regen.regeneration.policies import Policy
from pytest_regen.regeneration.queue import drive_flow
from pytest_regen.regeneration.values import Ask, TurnSettings
from pytest_regen.settings import read_settings
from pytest_regen.sources.boundaries import extract_type_block, replace_type_block
from pytest_regen.store_folders import is_store
from pytest_regen.turns.values import Reply, TurnRequest, Usage
from pytest_regen.units.kind import Example, Kind, issues_from
from pytest_regen.units.ledger import Entry, as_bytes, entry_name
from pytest_regen.units.loading import ProjectKinds, load_kinds
from pytest_regen.units.naming import unit_id
from pytest_regen.units.texts import put_text, same_text
from pytest_regen.validation.issues import WEAKENED

_REPLIES: Final = "replies.json"
_LEFT_OUT: Final = (*("__pycache__", "build", "cassettes", "dist", "env", "node_modules", "venv"),)
_STATES: Final = ("STALE", "UNRECORDED")
_MODEL: Final = "conformance"


class ProjectReplies:
    """A model that answers each prompt with the text that a file beside the project has for it."""

    reference = f"{__name__}:ProjectReplies"

    def __init__(self, root: Path) -> None:
        self._file = root / ".regen" / _REPLIES
        self.requests: list[TurnRequest] = []

    def say(self, replies: Mapping[str, str]) -> None:
        """Answer these prompts with these texts from now on."""
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(replies), "utf-8")

    def send(self, request: TurnRequest) -> Reply:
        """Return the text for the prompt that a request holds."""
        self.requests.append(request)
        text = self._text(request.messages[-1].content)
        return Reply(text, usage=Usage(input_tokens=9, output_tokens=9), model=_MODEL)

    def answer(self, body: Mapping[str, Any]) -> str:
        """Return the text for a request to the emulator."""
        content = body["messages"][-1]["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        return self._text("".join(block["text"] for block in blocks))

    def _text(self, asked: str) -> str:
        replies: dict[str, str] = json.loads(self._file.read_text("utf-8"))
        # The longest: one prompt may hold another.
        return replies[max((prompt for prompt in replies if prompt in asked), key=len)]


@dataclass(frozen=True)
class Lab:
    """A project in which one place holds the units of the examples."""

    root: Path
    place: str
    examples: tuple[Example, ...]

    @property
    def name(self) -> str:
        """The unit that laws about one unit take."""
        return self.examples[0][0]

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [example[0] for example in self.examples]

    @property
    def texts(self) -> tuple[str, str]:
        """Its good text, and its bad one."""
        return self.examples[0][1:]

    @property
    def kinds(self) -> ProjectKinds:
        """The kinds, made anew."""
        return load_kinds(self.root, read_settings(self.root))

    def ignored_codes(self, _id: str) -> frozenset[str]:
        """Return none."""
        return frozenset()

    def stores(self) -> list[Path]:
        """Return all stores."""
        return [path for path in sorted(self.root.rglob("*")) if is_store(path)]

    def file(self) -> Place[Any]:
        """Return the file with its kind, or the store, made anew."""
        place = open_place(self, self.root / self.place)
        assert place is not None
        return place

    @property
    def path(self) -> Path:
        """The file that people read."""
        place = self.file()
        return place.path / place.file_name if place.has_pages else place.path

    def codes(self, name: str = "") -> list[str]:
        """Return the codes of what is wrong with a unit, in order, but for its own warnings."""
        return [
            issue.code
            for issue in self.file().open().issues(name or self.name)
            if issue.severity == "error" or issue.code in _STATES
        ]

    def text(self, name: str = "") -> str:
        """Return what stands in the file for a unit."""
        place, name = self.file(), name or self.name
        view = place.open()
        text = extract_type_block(view.text, name) if place.has_pages else view.output(name, 1)
        return text or ""

    def same(self, old: str, new: str) -> bool:
        """Return whether two texts of a unit mean the same."""
        place = self.file()
        if place.has_pages:
            return old.split() == new.split()
        return same_text(_kind_of(place), old, new)

    def put(self, text: str, name: str = "") -> None:
        """Edit a unit as somebody would."""
        place, name = self.file(), name or self.name
        view = place.open()
        if place.has_pages:
            made: object = replace_type_block(view.text, name, text)
        else:
            kind = _kind_of(place)
            made = put_text(kind, view.text, name, text, list(view.names), place=self.place)
            assert isinstance(made, str), f"{name} cannot hold this text: {made.message}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(str(made).encode("utf-8"))

    def let_be_wrong(self, name: str = "", text: str = "") -> None:
        """Let a unit be wrong as it was written: the file and the ledger have the bad text."""
        self.put(text or self.texts[1], name)
        verbs.adopt(self.file(), [name or self.name])

    def take_out(self, name: str) -> None:
        """Let a unit be missing: taken out of the file where that leaves its name, else a stub.

        A unit whose file has no name but those in it, and whose text cannot be blank, stays.
        """
        file, before = self.file(), self.path.read_bytes()
        if file.has_pages:
            return  # A store has a text for each of its types.
        kind, units = _kind_of(file), file.open()
        region = kind.region
        remove = getattr(region, "remove", None)
        if remove is not None:
            self.path.write_bytes(remove(units.text, [name]).encode("utf-8"))
        elif len(units.texts) == 1 and hasattr(region, "insert"):
            self.path.unlink()
        if name in kind.units(self.path) and name not in self.file().open().texts:
            return
        self.path.write_bytes(before)
        stub = put_text(kind, units.text, name, "", list(units.names), place=self.place)
        if isinstance(stub, str):
            self.path.write_bytes(stub.encode("utf-8"))

    def asks(self, model: ProjectReplies) -> list[Ask]:
        """Return what is asked for each unit."""
        place, settings = self.file(), TurnSettings(model)
        view = place.open()
        return [ask for name in self.names for ask in place.asks(view, name, {1: ()}, settings)]

    def learn(self, which: int) -> ProjectReplies:
        """Return a model that answers with the good texts (1) or the bad ones (2)."""
        model, replies = ProjectReplies(self.root), {}
        for example, ask in zip(self.examples, self.asks(model), strict=True):
            text = example[which]
            # As it is, in a fence, or as JSON, because a kind reads replies in a way of its own.
            for reply in (text, f"````\n{text}\n````", json.dumps(text)):
                if self.same(ask.extract([reply]), text):
                    replies[str(ask.request.messages[-1].content)] = reply
                    break
            else:
                read = ask.extract([text])
                raise AssertionError(f"no reply gives the text {text!r}: extract gives {read!r}")
        model.say(replies)
        return model

    def ask(self, policy: Policy, model: ProjectReplies, *, rounds: int = 1) -> Work[Any]:
        """Let the engine work on the unit."""
        settings = TurnSettings(model)
        steps = work_steps(self.file(), Job(policy, [self.name], rounds), settings)
        return drive_flow(steps, settings)

    def generate(self, model: ProjectReplies) -> None:
        """Ask for the unit where it is missing; for one that cannot be missing, all the same."""
        is_missing = self.file().open().missing(self.name)
        self.ask(Policy(is_draft=True) if is_missing else Policy({self.name: {1: ()}}), model)

    def files(self) -> dict[str, bytes]:
        """Return the project's files without what its places remember, the way they are."""
        memory = (".regen/", ".pytest_cache/", "cassettes/", f"{self.place}/")
        paths = {
            path.relative_to(self.root).as_posix(): path
            for path in self.root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        return {
            name: path.read_bytes()
            for name, path in paths.items()
            if path == self.path or not name.startswith(memory)
        }

    def copy(self, root: Path) -> "Lab":
        """Return a copy."""
        shutil.copytree(self.root, root)
        return replace(self, root=root)

    def pytest(self, *options: str, url: str) -> subprocess.CompletedProcess[str]:
        """Run pytest on the units: outside CI, without a key, with no plugin but ours."""
        ours = ("PYTEST_", "ANTHROPIC_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        env.pop("CI", None)
        env |= {"ANTHROPIC_API_KEY": "none-needed", "ANTHROPIC_BASE_URL": url}
        env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NO_COLOR": "1", "COLUMNS": "200"}
        plugin = ("-p", "pytest_regen.pytest_plugin.plugin", "-p", "no:cacheprovider")
        ids = [unit_id(self.place, name) for name in self.names]
        command = [sys.executable, "-m", "pytest", *plugin, "-q", *options, *ids]
        return subprocess.run(
            command,
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


class KindConformance:
    """Holds a kind against the laws of the engine; subclass it and set ``kind``."""

    kind: ClassVar[str | type[Kind]]
    """``module:Class``, importable from the root of the project, or the class itself; empty for
    stores of types, which need ``settings`` and ``examples`` with types of one page."""

    project: ClassVar[str | Path | None] = None
    """The folder to copy; by default the rootdir, without folders that hold no input of a kind."""

    examples: ClassVar[Sequence[Example] | None] = None
    """Name, good text and bad text of some units; by default those of the kind."""

    settings: ClassVar[str] = ""
    """``[tool.pytest-regen]`` for the copy, as TOML; by default it names the kind."""

    _template: ClassVar[Lab]

    @pytest.fixture
    def lab(
        self,
        request: pytest.FixtureRequest,
        tmp_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[Lab]:
        """A copy of the project for one test; it is made once for all of them."""
        cls, kind = type(self), self.kind
        name = kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}"
        with _fresh_import(name.partition(":")[0]):
            if "_template" not in vars(cls):
                root = tmp_path_factory.mktemp("kind") / "project"
                root.mkdir()
                self.make_project(root, Path(request.config.rootpath, self.project or ""))
                settings = self.settings or f'[tool.pytest-regen]\nkinds = ["{name}"]\n'
                (root / "pyproject.toml").write_text(settings, "utf-8")
                cls._template = _make_template(root, self.examples)
            yield cls._template.copy(tmp_path / "project")

    def make_project(self, root: Path, project: Path) -> None:
        """Fill the empty folder ``root`` with what the kind needs, by default with ``project``."""
        ignore = shutil.ignore_patterns(".*", *_LEFT_OUT)
        shutil.copytree(project, root, ignore=ignore, symlinks=True, dirs_exist_ok=True)

    # What the kind itself owes

    def test_good_texts_pass_and_bad_ones_fail(self, lab: Lab) -> None:
        """``check`` accepts what is right, refuses what is wrong, and says the same each time."""
        for name, good, bad in lab.examples:
            lab.put(good, name)
            assert lab.codes(name) in ([], ["DRIFT"]), f"{name}: the good text fails"
            lab.put(bad, name)
            assert set(lab.codes(name)) - {"DRIFT"}, f"{name}: the bad text passes"
            file = lab.file()
            units = file.open()
            assert units.issues(name) == file.open().issues(name), f"{name}: check is not stable"

    def test_a_text_comes_back_as_it_was_put_in(self, lab: Lab) -> None:
        """The region finds what it wrote, and leaves every other byte alone."""
        before = lab.path.read_bytes()
        for name, good, bad in lab.examples:
            for text in (bad, good):
                lab.put(text, name)
                assert lab.same(lab.text(name), text)
        assert lab.path.read_bytes() == before

    def test_a_text_never_weakens_itself(self, lab: Lab) -> None:
        """``weakens`` has nothing against a text beside itself, nor a good one beside a bad one."""
        kind = _kind_of(lab.file())
        for name, good, bad in lab.examples:
            units = []
            for text in (bad, good):
                lab.put(text, name)
                units.append(lab.file().open().unit(name))
            for old, new in ((units[0], units[0]), (units[1], units[1]), (units[0], units[1])):
                found = issues_from(kind.weakens(old, new), new, code=WEAKENED)
                assert not found, f"{name}: {found[0].message}"

    def test_an_answer_is_no_input(self, lab: Lab) -> None:
        """What is asked and what it was made from do not depend on the answer."""

        def asked() -> list[object]:
            requests = [ask.request for ask in lab.asks(ProjectReplies(lab.root))]
            view = lab.file().open()
            return [requests, *([] if lab.file().has_pages else map(view.inputs, lab.names))]

        before = asked()
        for name, _, bad in lab.examples:
            lab.put(bad, name)
        assert asked() == before

    # What the engine owes the kind

    def test_what_a_model_wrote_is_clean(self, lab: Lab) -> None:
        """Generated texts stand in the file and are remembered, with nothing wrong."""
        for name, good, _ in lab.examples:
            assert lab.codes(name) == []
            assert lab.file().open().author(name).model == _MODEL
            assert lab.same(lab.text(name), good)

    def test_an_edit_is_drift_and_is_not_healed(self, lab: Lab) -> None:
        """It is reported first, and blocks healing; ``rebuild`` drops it, ``adopt`` keeps it."""
        before, (_, bad) = lab.files(), lab.texts
        lab.put(bad)

        work = lab.ask(Policy(), lab.learn(1))

        assert lab.codes()[0] == "DRIFT"
        assert work.results[0].calls == 0
        assert lab.same(lab.text(), bad)
        verbs.rebuild(lab.file())
        assert lab.files() == before
        assert lab.codes() == []
        lab.put(bad)
        verbs.adopt(lab.file(), [lab.name])
        assert lab.file().open().author(lab.name).model == HAND
        assert "DRIFT" not in lab.codes()

    def test_a_changed_input_makes_it_stale(self, lab: Lab) -> None:
        """It is a warning until it is generated again."""
        entry = _entry_of(lab)
        _write_entry(lab, replace(entry, inputs_sha256="sha256:" + "0" * 64, inputs={}))
        assert lab.codes() == ["STALE"]

        lab.ask(Policy({lab.name: {1: ()}}), lab.learn(1))

        assert lab.codes() == []

    def test_what_is_missing_is_generated(self, lab: Lab) -> None:
        """A unit taken out is missed, asked for, and stands there again."""
        _kind_of(lab.file())
        shutil.rmtree(lab.root / ".regen" / "units")
        lab.take_out(lab.name)
        if not lab.file().open().missing(lab.name):
            pytest.skip("units are what the region finds: what is taken out is not missed")
        assert lab.codes() == ["MISSING_UNIT"]

        lab.ask(Policy(is_draft=True), lab.learn(1))

        assert lab.codes() == []
        assert lab.same(lab.text(), lab.texts[0])

    def test_text_from_before_the_ledger_is_unrecorded(self, lab: Lab) -> None:
        """It is checked, and ``adopt`` records it as written by hand.

        A warning says so unless the kind knows from elsewhere which units there are.
        """
        _kind_of(lab.file())
        shutil.rmtree(lab.root / ".regen" / "units")
        has_names = lab.file().open().has_named_units
        assert lab.codes() == ([] if has_names else ["UNRECORDED"])

        verbs.adopt(lab.file())

        assert _entry_of(lab).is_by_hand
        assert lab.codes() == []

    def test_what_nothing_names_is_an_orphan(self, lab: Lab) -> None:
        """An entry of a unit that is gone is reported, and dropped by ``forget``."""
        _write_entry(lab, replace(_entry_of(lab), name="renamed since"))
        assert [issue.code for issue in lab.file().open().orphans] == ["ORPHAN"]

        verbs.forget(lab.file())

        assert not lab.file().open().orphans
        assert lab.codes() == []

    def test_the_better_text_is_kept(self, lab: Lab) -> None:
        """A worse reply changes no byte of the file, and is to be found in the history."""
        before = lab.files()

        done = lab.ask(Policy({lab.name: {1: ()}}), lab.learn(2))

        assert lab.files() == before
        (rejected,) = done.results[0].rejected
        past = {past.id: past for past in lab.file().past()}[rejected]
        assert past.reason == "rejected"
        assert lab.same(past.entry.to_json()["output"], lab.texts[1])

    def test_a_model_that_repeats_itself_is_asked_no_more(self, lab: Lab) -> None:
        """The same mistake again is no progress; what heals it can be taken back."""
        lab.let_be_wrong()
        model = lab.learn(2)

        work = lab.ask(Policy(), model, rounds=9)

        assert work.results[0].stop_reason == "no_progress"
        assert len(model.requests) < 4  # Of nine.
        lab.ask(Policy(), lab.learn(1))
        assert lab.codes() == []
        verbs.restore(lab.file(), lab.name)
        assert lab.same(lab.text(), lab.texts[1])
        assert "DRIFT" not in lab.codes()

    def test_pytest_heals_and_replays_offline_with_workers(self, lab: Lab) -> None:
        """``--regen`` heals what fails, and does so again from its recording, without a model."""
        for name, _, bad in lab.examples:
            lab.let_be_wrong(name, bad)
        broken = lab.copy(lab.root.with_name("broken"))
        count = len(lab.examples)

        with Emulator(lab.learn(1).answer) as emulator:
            url = emulator.base_url
            healed = lab.pytest("--regen", "--regen-record", "once", url=url)

        assert f"{count} regenerated" in healed.stdout, healed.stdout + healed.stderr
        assert all(lab.codes(name) == [] for name, *_ in lab.examples)

        shutil.copytree(lab.root / "cassettes", broken.root / "cassettes")
        workers = ("-p", "xdist.plugin", "-n", "2") if importlib.util.find_spec("xdist") else ()
        replayed = broken.pytest("--regen", *workers, url=url)

        assert f"{count} regenerated" in replayed.stdout, replayed.stdout + replayed.stderr
        assert broken.files() == lab.files()


@contextmanager
def _fresh_import(module: str) -> Iterator[None]:
    """Let a kind be imported from the copy, also where it was imported from elsewhere before."""
    top = module.partition(".")[0]

    def take() -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name.partition(".")[0] == top]
        return {name: sys.modules.pop(name) for name in names if top != "pytest_regen"}

    before = take()
    try:
        yield
    finally:
        take()
        sys.modules.update(before)


_EXAMPLES: Final = 'set examples = [("name of a unit", "good text", "bad text")]'
"""What to do where there is none that can be used."""


def _make_template(root: Path, examples: Sequence[Example] | None) -> Lab:
    """Return the project with the units of the examples taken out, and generated by a model."""
    seen: list[str] = []
    for place in places_in(Lab(root, "", ())):
        names = list(place.open().names)
        default = () if place.has_pages else _kind_of(place).examples
        triples = tuple(examples or default)
        for triple in triples:
            parts: object = triple  # Unchecked so far, because the examples are somebody's code.
            is_triple = isinstance(parts, tuple | list) and len(parts) == 3
            if not is_triple or not all(isinstance(part, str) for part in triple):
                pytest.fail(f"{triple!r:.80} is no example; {_EXAMPLES}", pytrace=False)
        if triples := tuple(triple for triple in triples if triple[0] in names):
            path = os.path.relpath(place.path, root)
            project = Lab(root, Path(path).as_posix(), triples)
            break
        seen += names
    else:
        units = f"the kind's units are {', '.join(seen[:8])}" if seen else "the kind names no unit"
        pytest.fail(f"no file has a unit of the examples: {units}; {_EXAMPLES}", pytrace=False)
    for name, good, _ in project.examples:
        project.put(good, name)
    if not project.file().has_pages:
        verbs.adopt(project.file())
        verbs.forget(project.file(), project.names)
    for name in project.names:
        project.take_out(name)
    model = project.learn(1)
    for example in project.examples:
        replace(project, examples=(example,)).generate(model)
    return project


def _kind_of(place: Any) -> Kind:
    """Return the kind of a file; a law that is about kinds alone says nothing of a store."""
    if place.has_pages:
        pytest.skip("types of an API have no kind, and no ledger")
    kind: Kind = place.kind
    return kind


def _entry_of(project: Lab) -> Entry:
    _kind_of(project.file())
    entry: Entry | None = project.file().open().entry(project.name)
    assert entry is not None
    return entry


def _write_entry(project: Lab, entry: Entry) -> None:
    path = project.root / entry_name(project.place, entry.name)
    path.write_bytes(as_bytes(entry.to_json()))
