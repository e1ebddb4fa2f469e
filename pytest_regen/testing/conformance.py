"""One suite that holds every kind, and stores of types, against the laws of the engine.

Subclass it, name the kind, and pytest collects a test per law::

    class TestPatterns(KindConformance):
        kind = "regen_kinds:Patterns"

Each test works on a copy of the project, in which the units of ``Kind.examples`` are as a model
wrote them. Run as a program, the module does one piece of work and is killed at each of its writes.
"""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from pytest_regen.emulator import Emulator
from pytest_regen.files import observe_effects
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
from pytest_regen.units.ledger import as_bytes, entry_name
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
class _Project:
    """A project in which one place holds the units of the examples."""

    root: Path
    place: str
    examples: tuple[Example, ...]

    @property
    def name(self) -> str:
        """The unit that laws about one unit take."""
        return self.examples[0][0]

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

    def learn(self, which: int) -> ProjectReplies:
        """Return a model that answers with the good texts (1) or the bad ones (2)."""
        place, model = self.file(), ProjectReplies(self.root)
        view, replies = place.open(), {}
        for example in self.examples:
            (ask,) = place.asks(view, example[0], {1: ()}, TurnSettings(model))
            prompt = str(ask.request.messages[-1].content)
            replies[prompt] = self._reply_for(ask, example[which])
        model.say(replies)
        return model

    def _reply_for(self, ask: Ask, text: str) -> str:
        """Return a reply that gives this text: as it is, in a fence, or as a string of JSON."""
        for reply in (text, f"````\n{text}\n````", json.dumps(text)):
            if self.same(ask.extract([reply]), text):
                return reply
        raise AssertionError(
            f"no reply gives the text {text!r}: extract({text!r}) is {ask.extract([text])!r}"
        )

    def asked(self) -> list[object]:
        """Return what is asked for each unit, and what it was made from."""
        place, model = self.file(), ProjectReplies(self.root)
        view = place.open()
        names = [name for name, *_ in self.examples]
        asks = [place.asks(view, name, {1: ()}, TurnSettings(model)) for name in names]
        inputs = [] if place.has_pages else [view.inputs(name) for name in names]
        return [[ask.request for (ask,) in asks], inputs]

    def ask(
        self, policy: Policy, model: ProjectReplies, *, name: str = "", rounds: int = 1
    ) -> Work[Any]:
        """Let the engine work on one unit."""
        names = [name or self.name]
        settings = TurnSettings(model)
        steps = work_steps(self.file(), Job(policy, names, rounds), settings)
        return drive_flow(steps, settings)

    def generate(self, model: ProjectReplies, name: str = "") -> None:
        """Ask for a unit that is missing; for one that cannot be missing, all the same."""
        name = name or self.name
        is_missing = self.file().open().missing(name)
        self.ask(Policy(is_draft=True) if is_missing else Policy({name: {1: ()}}), model, name=name)

    def files(self) -> dict[str, bytes]:
        """Return the project's files without what its places remember, the way they are."""
        memory = (".regen/", ".pytest_cache/", "cassettes/", f"{self.place}/")
        read = self.path
        return {
            name: path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
            if not (name := path.relative_to(self.root).as_posix()).startswith(memory)
            or path == read
        }

    def copy(self, root: Path) -> "_Project":
        """Return a copy."""
        shutil.copytree(self.root, root)
        return replace(self, root=root)

    def run(self, *command: str, url: str = "") -> subprocess.CompletedProcess[str]:
        """Run Python in the project: outside CI, without a key, with no plugin but ours."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "ANTHROPIC_")) and name != "CI"
        }
        return subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            env={
                **kept,
                "ANTHROPIC_API_KEY": "none-needed",
                "ANTHROPIC_BASE_URL": url,
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "NO_COLOR": "1",
                "COLUMNS": "200",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def pytest(self, *options: str, url: str = "") -> subprocess.CompletedProcess[str]:
        """Run pytest on the units of the examples."""
        ids = [unit_id(self.place, example[0]) for example in self.examples]
        plugin = ("-p", "pytest_regen.pytest_plugin.plugin", "-p", "no:cacheprovider")
        return self.run("-m", "pytest", *plugin, "-q", *options, *ids, url=url)


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

    kill_every: ClassVar[int] = 1
    """Kill at each write; a higher number takes a sample."""

    _template: ClassVar[_Project]

    @pytest.fixture
    def lab(
        self,
        request: pytest.FixtureRequest,
        tmp_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[_Project]:
        """A copy of the project for one test; it is made once for all of them."""
        cls = type(self)
        with _fresh_import(self._kind_name().partition(":")[0]):
            if "_template" not in vars(cls):
                root = tmp_path_factory.mktemp("kind") / "project"
                root.mkdir()
                self.make_project(root, Path(request.config.rootpath, self.project or ""))
                settings = self.settings or f'[tool.pytest-regen]\nkinds = ["{cls._kind_name()}"]\n'
                (root / "pyproject.toml").write_text(settings, "utf-8")
                cls._template = _make_template(root, self.examples)
            yield cls._template.copy(tmp_path / "project")

    def make_project(self, root: Path, project: Path) -> None:
        """Fill the empty folder ``root`` with what the kind needs, by default with ``project``."""
        ignore = shutil.ignore_patterns(".*", *_LEFT_OUT)
        shutil.copytree(project, root, ignore=ignore, symlinks=True, dirs_exist_ok=True)

    @classmethod
    def _kind_name(cls) -> str:
        kind = cls.kind
        return kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}"

    # What the kind itself owes

    def test_good_texts_pass_and_bad_ones_fail(self, lab: _Project) -> None:
        """``check`` accepts what is right, refuses what is wrong, and says the same each time."""
        for name, good, bad in lab.examples:
            lab.put(good, name)
            assert lab.codes(name) in ([], ["DRIFT"]), f"{name}: the good text fails"
            lab.put(bad, name)
            assert set(lab.codes(name)) - {"DRIFT"}, f"{name}: the bad text passes"
            file = lab.file()
            units = file.open()
            assert units.issues(name) == file.open().issues(name), f"{name}: check is not stable"

    def test_a_text_comes_back_as_it_was_put_in(self, lab: _Project) -> None:
        """The region finds what it wrote, and leaves every other byte alone."""
        before = lab.path.read_bytes()
        for name, good, bad in lab.examples:
            for text in (bad, good):
                lab.put(text, name)
                assert lab.same(lab.text(name), text)
        assert lab.path.read_bytes() == before

    def test_a_text_never_weakens_itself(self, lab: _Project) -> None:
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

    def test_an_answer_is_no_input(self, lab: _Project) -> None:
        """What is asked and what it was made from do not depend on the answer."""
        before = lab.asked()
        for name, _, bad in lab.examples:
            lab.put(bad, name)
        assert lab.asked() == before

    # What the engine owes the kind

    def test_what_a_model_wrote_is_clean(self, lab: _Project) -> None:
        """Generated texts stand in the file and are remembered, with nothing wrong."""
        for name, good, _ in lab.examples:
            assert lab.codes(name) == []
            assert lab.file().open().author(name).model == _MODEL
            assert lab.same(lab.text(name), good)

    def test_an_edit_is_drift_and_is_not_healed(self, lab: _Project) -> None:
        """It is reported first, blocks healing, and is kept by ``adopt``."""
        _, bad = lab.texts
        lab.put(bad)

        done = lab.ask(Policy(), lab.learn(1))

        assert lab.codes()[0] == "DRIFT"
        assert done.results[0].calls == 0
        assert lab.same(lab.text(), bad)
        verbs.adopt(lab.file(), [lab.name])
        assert lab.file().open().author(lab.name).model == HAND
        assert "DRIFT" not in lab.codes()

    def test_rebuild_drops_an_edit(self, lab: _Project) -> None:
        """The file is as the ledger has it, byte for byte, without a model."""
        before = lab.files()
        lab.put(lab.texts[1])

        verbs.rebuild(lab.file())

        assert lab.files() == before
        assert lab.codes() == []

    def test_a_changed_input_makes_it_stale(self, lab: _Project) -> None:
        """It is a warning until it is generated again."""
        _change_entry(lab, inputs_sha256="sha256:" + "0" * 64, inputs={})
        assert lab.codes() == ["STALE"]

        lab.ask(Policy({lab.name: {1: ()}}), lab.learn(1))

        assert lab.codes() == []

    def test_what_is_missing_is_generated(self, lab: _Project) -> None:
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

    def test_text_from_before_the_ledger_is_unrecorded(self, lab: _Project) -> None:
        """It is checked, and ``adopt`` records it as written by hand.

        A warning says so unless the kind knows from elsewhere which units there are.
        """
        _kind_of(lab.file())
        shutil.rmtree(lab.root / ".regen" / "units")
        has_names = lab.file().open().has_named_units
        assert lab.codes() == ([] if has_names else ["UNRECORDED"])

        verbs.adopt(lab.file())

        entry = lab.file().open().entry(lab.name)
        assert entry is not None
        assert entry.is_by_hand
        assert lab.codes() == []

    def test_what_nothing_names_is_an_orphan(self, lab: _Project) -> None:
        """An entry of a unit that is gone is reported, and dropped by ``forget``."""
        _kind_of(lab.file())
        entry = lab.file().open().entry(lab.name)
        assert entry is not None
        path = lab.root / entry_name(lab.place, "renamed since")
        path.write_bytes(as_bytes(replace(entry, name="renamed since").to_json()))
        assert [issue.code for issue in lab.file().open().orphans] == ["ORPHAN"]

        verbs.forget(lab.file())

        assert not lab.file().open().orphans
        assert lab.codes() == []

    def test_the_better_text_is_kept(self, lab: _Project) -> None:
        """A worse reply changes no byte of the file, and is to be found in the history."""
        before = lab.files()

        done = lab.ask(Policy({lab.name: {1: ()}}), lab.learn(2))

        assert lab.files() == before
        (rejected,) = done.results[0].rejected
        past = {past.id: past for past in lab.file().past()}[rejected]
        assert past.reason == "rejected"
        assert lab.same(past.entry.to_json()["output"], lab.texts[1])

    def test_a_model_that_repeats_itself_is_asked_no_more(self, lab: _Project) -> None:
        """The same mistake again is no progress; the calls end."""
        _let_be_wrong(lab)
        model = lab.learn(2)

        done = lab.ask(Policy(), model, rounds=9)

        assert done.results[0].stop_reason == "no_progress"
        assert len(model.requests) < 4  # of nine

    def test_a_text_of_the_history_is_restored(self, lab: _Project) -> None:
        """What was replaced can be put back."""
        _let_be_wrong(lab)
        lab.ask(Policy(), lab.learn(1))
        assert lab.codes() == []

        verbs.restore(lab.file(), lab.name)

        assert lab.same(lab.text(), lab.texts[1])
        assert "DRIFT" not in lab.codes()

    def test_a_kill_at_any_write_leaves_the_old_or_the_new(
        self, lab: _Project, tmp_path: Path
    ) -> None:
        """Whatever was left loads, and the work can be done again."""
        if not hasattr(os, "fork"):
            pytest.skip("the system cannot fork")
        before = {}
        for effort in _EFFORTS:
            before[effort] = _prepare(lab.copy(tmp_path / effort), effort)

        step = str(self.kill_every)

        done = lab.run("-m", __name__, str(tmp_path), lab.place, lab.name, step)

        assert done.returncode == 0, done.stdout + done.stderr
        for effort, killed in json.loads(done.stdout).items():
            after = lab.texts[1] if effort == "adopt" else lab.texts[0]
            assert len(killed) > 1, f"{effort}: nothing was written"
            for folder, effect in killed:
                left = replace(lab, root=Path(folder))
                codes = set(left.codes())
                is_new = lab.same(left.text(), after) and "DRIFT" not in codes
                assert is_new or codes == before[effort], f"{effort}, killed {effect}: {codes}"
                others = left.files().keys() ^ lab.files().keys()
                assert others <= {lab.place}, f"{effort}, killed {effect}: {others}"
                _EFFORTS[effort](left)
                assert lab.same(left.text(), after), f"{effort}, killed {effect}"

    def test_pytest_heals_and_replays_offline_with_workers(self, lab: _Project) -> None:
        """``--regen`` heals what fails, and does so again from its recording, without a model."""
        for name, _, bad in lab.examples:
            _let_be_wrong(lab, name, bad)
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
    is_ours = top == __name__.partition(".")[0]
    names = [] if is_ours else [module for module in sys.modules if module.partition(".")[0] == top]
    kept = {name: sys.modules.pop(name) for name in names}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == top and not is_ours]:
            del sys.modules[name]
        sys.modules.update(kept)


_EXAMPLES: Final = 'set examples = [("name of a unit", "good text", "bad text")]'
"""What to do where there is none that can be used."""


def _checked_examples(examples: Sequence[Example]) -> Sequence[Example]:
    """Return the examples; the tests fail, in one line, where one is no triple of texts."""
    for each in examples:
        given: object = each
        is_triple = isinstance(given, tuple | list) and len(given) == 3
        if not is_triple or not all(isinstance(part, str) for part in each):
            pytest.fail(f"{given!r:.80} is no example; {_EXAMPLES}", pytrace=False)
    return examples


def _make_template(root: Path, examples: Sequence[Example] | None) -> _Project:
    """Return the project with the units of the examples taken out, and generated by a model."""
    seen: list[str] = []
    for place in places_in(_Project(root, "", ())):
        names = list(place.open().names)
        default = () if place.has_pages else _kind_of(place).examples
        wanted = _checked_examples(examples or tuple(default))
        found = tuple(each for each in wanted if each[0] in names)
        if found:
            path = os.path.relpath(place.path, root)
            project = _Project(root, Path(path).as_posix(), found)
            break
        seen += names
    else:
        there = f"the kind's units are {', '.join(seen[:8])}" if seen else "the kind names no unit"
        pytest.fail(f"no file has a unit of the examples: {there}; {_EXAMPLES}", pytrace=False)
    for name, good, _ in project.examples:
        project.put(good, name)
    names = [name for name, *_ in project.examples]
    if not project.file().has_pages:
        verbs.adopt(project.file())
        verbs.forget(project.file(), names)
    for name in names:
        project.take_out(name)
    model = project.learn(1)
    for name, *_ in project.examples:
        project.generate(model, name)
    return project


def _kind_of(place: Any) -> Kind:
    """Return the kind of a file; a law that is about kinds alone says nothing of a store."""
    if place.has_pages:
        pytest.skip("types of an API have no kind, and no ledger")
    kind: Kind = place.kind
    return kind


def _change_entry(project: _Project, **changes: Any) -> None:
    _kind_of(project.file())
    entry = project.file().open().entry(project.name)
    assert entry is not None
    path = project.root / entry_name(project.place, project.name)
    path.write_bytes(as_bytes(replace(entry, **changes).to_json()))


def _let_be_wrong(project: _Project, name: str = "", text: str = "") -> None:
    """Let a unit be wrong as it was written: the file and the ledger have the bad text."""
    project.put(text or project.texts[1], name)
    verbs.adopt(project.file(), [name or project.name])


def _prepare(project: _Project, effort: str) -> set[str]:
    """Leave work to do; return the codes of the unit before it is done."""
    if effort == "heal":
        _let_be_wrong(project)
    elif effort == "generate":
        project.take_out(project.name)
        (project.root / entry_name(project.place, project.name)).unlink(missing_ok=True)
    else:
        project.put(project.texts[1])
    project.learn(1)
    return set(project.codes())


_EFFORTS: Final[Mapping[str, Callable[[_Project], object]]] = {
    "heal": lambda project: project.ask(Policy(), ProjectReplies(project.root)),
    "generate": lambda project: project.generate(ProjectReplies(project.root)),
    "adopt": lambda project: verbs.adopt(project.file(), [project.name]),
}
"""What is killed; each may be done again."""


def _kill_at_writes(project: _Project, effort: str, step: int) -> list[tuple[str, str]]:
    """Return copies in which the work was killed, each ``step`` writes later than the last.

    The last copy is one whose work was left alone.
    """
    seen: list[tuple[str, str]] = []
    while True:
        copy = project.copy(project.root.with_name(f"{effort}{len(seen)}"))
        note = copy.root.with_suffix(".effect")
        pid = os.fork()
        if not pid:
            _work_and_die(copy, effort, note, step * len(seen))
        _, status = os.waitpid(pid, 0)
        if status not in {0, signal.SIGKILL}:
            raise AssertionError(f"the work ended with {status}")
        seen.append((str(copy.root), note.read_text("utf-8") if note.exists() else ""))
        if not note.exists():
            return seen


def _work_and_die(project: _Project, effort: str, note: Path, left: int) -> None:
    """Do the work in this process, and kill it before one of its writes; it never returns."""
    writes = iter(range(left, -1, -1))

    def observe(effect: str, path: Path) -> None:
        if effect.startswith("before") and next(writes) == 0:
            note.write_text(f"{effect} {path.name}", "utf-8")
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        with observe_effects(observe):
            _EFFORTS[effort](project)
    except BaseException as error:  # noqa: BLE001 - the parent counts it
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def _main(space: str, place: str, name: str, step: str) -> None:
    killed = {}
    for effort in _EFFORTS:
        project = _Project(Path(space, effort), place, ((name, "", ""),))
        project.file().open()  # Imports once here, instead of in each child.
        killed[effort] = _kill_at_writes(project, effort, int(step))
    sys.stdout.write(json.dumps(killed))


if __name__ == "__main__":
    _main(*sys.argv[1:])
