"""What running a type shows is its correction, and decides between two answers."""

import json
from pathlib import Path

from command_line import command
from run_stores import behaviour_issues, run_store

from pytest_regen.documents import Components
from pytest_regen.regeneration import generate_store
from pytest_regen.regeneration.regenerate import heal_store
from pytest_regen.regeneration.values import TurnSettings
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider

ROUNDED = {
    "    note: str | None = None\n": (
        "    note: str | None = None\n\n"
        "    def model_post_init(self, context: object) -> None:\n"
        "        self.length = float(round(self.length))\n"
    )
}


def stored(path: Path, changes: dict[str, str]) -> RegenStore:
    """Return a store whose pages hold an edit, as if a model had written it."""
    store = run_store(path, changes, language="python", profile="default")
    command("adopt", store.path)
    return RegenStore.open(store.path)


def code_of(store: RegenStore, type_name: str) -> str:
    """Return what the only page of a type holds."""
    return store.pages_of(type_name)[0].output


def test_the_finding_is_the_correction(tmp_path: Path) -> None:
    """Field, value and instance in a few lines; the answer that mends it is kept."""
    store = stored(tmp_path / "wrong", ROUNDED)
    right = code_of(run_store(tmp_path / "right", language="python", profile="default"), "Berth")
    prompts: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        prompts.append(messages[-1]["content"])
        return f"```python\n{right}\n```"

    result = heal_store(store.path, settings=TurnSettings(CallableProvider(model)))

    assert result.regenerated == [("Berth", 1)]
    assert not behaviour_issues(RegenStore.open(store.path))
    [prompt] = prompts
    block = prompt.partition("\n\nDo not introduce")[0].splitlines()
    assert block[3].startswith("  [ROUND_TRIP] 'length' comes back as ")
    assert block[4:6] == ['    Field: "length"', block[5]]
    assert block[5].startswith("    Line ")
    assert block[6].startswith('    instance: {"id": ')
    assert len(block) == 7


def test_code_that_does_not_load_is_replaced_by_code_that_does(tmp_path: Path) -> None:
    """Even if what is shown then are more errors than the one before."""
    changes = {**ROUNDED, "    id: int\n": "    id: int = Field(repr=unheard_of)\n"}
    store = stored(tmp_path, changes)
    loads = code_of(store, "Berth").replace("repr=unheard_of", "repr=False")
    loads = loads.replace("float(round(self.length))", "float(round(self.length)); self.id = 7")

    result = heal_store(
        store.path, settings=TurnSettings(CallableProvider(lambda _: loads)), attempts=1
    )

    assert result.regenerated == [("Berth", 1)]


def test_a_first_draft_is_tried_before_its_folder_is_there(tmp_path: Path) -> None:
    """What ``validate`` would find, ``generate`` finds: the answer is asked for again."""
    schema = {"type": "object", "properties": {"deck": {"type": "string"}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Ships", "version": "1"},
        "paths": {},
        "components": {"schemas": {"Ship": schema}},
    }
    (tmp_path / "ships.json").write_text(json.dumps(document), "utf-8")
    right = "class Ship(ApiModel):\n    deck: str | None = None\n"
    narrow = right.replace(":\n", ':\n    model_config = ConfigDict(extra="forbid")\n', 1)
    answers = iter([narrow, right])

    result = generate_store(
        tmp_path / "ships.json",
        Components(),
        tmp_path / "api",
        language="python",
        provider=CallableProvider(lambda _: f"```python\n{next(answers)}```"),
    )

    assert result.calls == 2
    assert not result.validation["Ship"].issues
