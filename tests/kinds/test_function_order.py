"""A function that calls a broken one of its file is asked for after it, and only if it is wrong."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from unit_asking import generate_units, heal_units

from pytest_regen import sandbox
from pytest_regen.kinds.functions.lint import used_units
from pytest_regen.kinds.functions.source import read_module
from pytest_regen.regeneration import TurnSettings, verbs
from pytest_regen.settings import read_settings
from pytest_regen.turns.values import Reply, TurnRequest
from pytest_regen.units.loading import load_kinds
from pytest_regen.units.place import UnitFile, open_units

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason="no sandbox here")

# As in pydash/numerical.py: callers stand above what they call.
RIGHT = {
    "mean": "return mean_by(numbers, float)",
    "spread": "return variance(numbers) / 2",
    "variance": "at = mean(numbers)\nreturn mean([(one - at) ** 2 for one in numbers])",
    "mean_by": "return sum_by(numbers, key) / len(numbers)",
    "sum_by": "return sum(key(one) for one in numbers)",
    "most": "return max(numbers)",
}
RESULTS = {"mean": 2.0, "spread": 0.5, "variance": 1.0, "mean_by": 2.0, "sum_by": 4.0, "most": 3}
FILE = "numbers_of.py"


def module(bodies: Mapping[str, str]) -> str:
    parts = []
    for name, body in bodies.items():
        key = ", float" if name.endswith("_by") else ""
        example = f">>> {name}([1, 3]{key})\n{RESULTS[name]}"
        lines = f'"""Do {name}.\n\n{example}\n"""\n# [REGEN:BEGIN {name}]\n{body}\n'
        code = textwrap.indent(f"{lines}# [REGEN:END {name}]\n", "    ")
        parts.append(f"def {name}(numbers{', key' * name.endswith('_by')}):\n{code}")
    return "\n\n".join(parts)


def write(root: Path, wrong: dict[str, str]) -> UnitFile:
    """Write the module with some bodies wrong, recorded as it stands."""
    (root / FILE).write_text(module(RIGHT | wrong), "utf-8")
    settings = '[tool.pytest.ini_options]\n[tool.pytest-regen]\nfunctions = ["*_of.py"]\n'
    (root / "pyproject.toml").write_text(settings, "utf-8")
    file = open_units(load_kinds(root, read_settings(root)), FILE)
    verbs.adopt(file, [name for name, body in (RIGHT | wrong).items() if body != "..."])
    return file


class Model:
    """Answers with the right body, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send(self, request: TurnRequest) -> Reply:
        """Return the body of the function asked for."""
        name = asked_for(request.messages[-1].content)
        self.asked.append(name)
        return Reply(RIGHT[name], stop_reason="end_turn", model="double")


def asked_for(prompt: str) -> str:
    """Return the name of the function that a prompt asks for."""
    found = re.findall(r"Write the code of the function `(\w+)`", prompt)
    return str(found[-1])


WRONG = {"mean_by": "return 0.0", "sum_by": "return 1", "variance": "return mean(numbers)"}


def test_what_others_call_is_healed_first(tmp_path: Path) -> None:
    """Right functions fail with it, pass after it, and are not asked for."""
    file = write(tmp_path, WRONG)
    assert {name for name in RIGHT if file.open().score(name).errors} == {*RIGHT} - {"most"}
    model = Model()

    done = heal_units(file, settings=TurnSettings(model), attempts=1)

    assert model.asked[0] == "mean_by"  # Its answer is right as soon as sum_by is.
    assert sorted(model.asked) == sorted(WRONG)
    assert (tmp_path / FILE).read_text("utf-8") == module(RIGHT)
    assert not any(result.issues_after for result in done.results)


def test_drafts_are_judged_with_one_another(tmp_path: Path) -> None:
    """All are asked for once: none is wrong because another is still missing."""
    file = write(tmp_path, dict.fromkeys(RIGHT, "..."))
    model = Model()

    generate_units(file, settings=TurnSettings(model, jobs=4))

    assert sorted(model.asked) == sorted(RIGHT)
    assert not any(file.open().issues(name) for name in RIGHT)


def test_functions_that_call_each_other_are_asked_for_in_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    wrong = {"mean": "return spread(numbers)", "spread": "return mean(numbers)"}
    file, model = write(tmp_path, wrong), Model()

    heal_units(file, settings=TurnSettings(model), attempts=1)

    assert model.asked == ["mean", "spread"]


def test_what_a_function_uses() -> None:
    """By its own lines and its examples; through classes and names of the module."""
    text = '''
import acme as here


class Boat:
    def __init__(self):
        # [REGEN:BEGIN Boat.__init__]
        self.name = plain()
        # [REGEN:END Boat.__init__]

    def sail(self):
        # [REGEN:BEGIN Boat.sail]
        return self.name.lower() + here.far()
        # [REGEN:END Boat.sail]

    def lower(self):
        # [REGEN:BEGIN Boat.lower]
        return (
        # [REGEN:END Boat.lower]


def plain():
    """Plain.

    >>> far(1)
    >>> )
    """
    # [REGEN:BEGIN plain]
    return plain
    # [REGEN:END plain]


def far(name=plain):
    # [REGEN:BEGIN far]
    return Boat()
    # [REGEN:END far]
'''
    uses = {name: set(used) for name, used in used_units(read_module(text)).items()}

    assert uses == {
        "Boat.__init__": {"plain"},
        "Boat.sail": {"Boat.lower", "far"},
        "Boat.lower": set(),
        "plain": {"far"},
        "far": {"plain", "Boat.__init__"},
    }
