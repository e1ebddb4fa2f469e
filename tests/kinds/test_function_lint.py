"""What is seen in a function without running it."""

from pathlib import Path

import pytest
from tables import each

from pytest_regen.kinds.functions.lint import check_code
from pytest_regen.kinds.functions.project import Project
from pytest_regen.kinds.functions.source import FunctionRegion, read_module

MODULE = '''\
import gzip
import os
import re
from datetime import date
from pathlib import Path

from acme import models

LIMIT = 3
if LIMIT > 2:
    import shutil


async def wait():
    # [REGEN:BEGIN wait]
    # [REGEN:END wait]


class Clock:
    hands = 2

    def tell(self, text: str) -> str:
        """Tell."""
        # [REGEN:BEGIN Clock.tell]
        # [REGEN:END Clock.tell]


def other():
    global made
    made = 1
    # [REGEN:BEGIN other]
    def (
    # [REGEN:END other]
'''
PYPROJECT = (
    '[project]\nname = "acme"\nrequires-python = ">=3.11"\ndependencies = ["PyYAML>=6", "pluggy"]\n'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, "utf-8")
    package = tmp_path / "src" / "acme"
    package.mkdir(parents=True)
    for name in ("__init__", "models", "clocks"):
        (package / f"{name}.py").write_text("", "utf-8")
    return tmp_path


def found(
    root: Path, code: str, name: str = "Clock.tell", allow: tuple[str, ...] = (), head: str = ""
) -> list[str]:
    path = root / "src" / "acme" / "clocks.py"
    module = read_module(FunctionRegion().replace(head + MODULE, {name: code}))
    issues = check_code(Project(root), path, module.places[name], allow=allow)
    return [f"{issue.line} {issue.code}: {issue.message}" for issue in issues]


@each(
    "code",
    [
        "return re.sub('a', str(LIMIT), text) or made or wait or __name__",
        "import json\nfrom collections import Counter\nreturn json.dumps(Counter(text))",
        "from . import models as m\nfrom .models import Boat\nimport acme.models\nreturn m, acme",
        "return Path(text).open().read() or Path(text).open('rb') or gzip.open(text, 'rt')",
        "return text.replace('a', 'b') or os.path.join(text) or os.listdir(text)",
    ],
)
def test_good_code(root: Path, code: str) -> None:
    assert not found(root, code)


@each(
    ("code", "issue"),
    [
        ("return (", "1 SYNTAX: '(' was never closed"),
        ("        return 1\nimport os", "2 SYNTAX: the code does not stay within its function"),
        ("return json.dumps(text)", "1 UNDEFINED_NAME: json is not defined"),
        ("x = 1\nreturn [hands for _ in text]", "2 UNDEFINED_NAME: hands is not defined"),
        ("import requests", "1 NOT_ALLOWED: imports requests, which is neither"),
        ("\nimport subprocess", "2 NOT_ALLOWED: imports subprocess, which starts processes"),
        ("from urllib import request", "1 NOT_ALLOWED: imports urllib.request, which uses the"),
        ("return eval(text)", "1 NOT_ALLOWED: uses eval, which runs text as code"),
        ("open(text, 'w')", "1 NOT_ALLOWED: opens a file for writing"),
        ("open(text, mode='a')", "1 NOT_ALLOWED: opens a file for writing"),
        ("Path(text).write_text('')", "1 NOT_ALLOWED: changes files by write_text"),
        ("return Path(text).open('r+b')", "1 NOT_ALLOWED: opens a file for writing"),
        ("os.replace(text, 'b')", "1 NOT_ALLOWED: changes files by replace"),
    ],
)
def test_what_is_wrong(root: Path, code: str, issue: str) -> None:
    said = found(root, code)

    assert len(said) == 1
    assert issue in said[0]


def test_code_of_another_unit_is_not_looked_at(root: Path) -> None:
    """``other`` cannot be read, and that is its own fault alone."""
    assert not found(root, "return await other()", "wait")
    assert "SYNTAX" in found(root, "def (", "other")[0]


def test_names_that_a_module_binds_in_a_dictionary(root: Path) -> None:
    """They cannot be listed: none is missing. What a model wrote binds nothing so."""
    code, binds = "global mean\nreturn mean(text)", "globals()[name] = len"
    own = f"for name in ('mean', 'median'):\n    {binds}\n"

    assert found(root, code)
    assert not found(root, code, head=own)
    assert found(root, f"{binds.replace('name', 'text')}\n{code}")


def test_settings_allow_more(root: Path) -> None:
    code = "import subprocess, requests\nreturn eval(text), open(text, 'w')"

    assert not found(root, code, allow=("subprocess", "requests", "eval", "open"))


def test_syntax_that_the_project_does_not_support(root: Path) -> None:
    pyproject = root / "pyproject.toml"
    pyproject.write_text(PYPROJECT.replace(">=3.11", ">=3.9"), "utf-8")

    (said,) = found(root, "match text:\n    case str():\n        return 1")

    assert "the project supports Python 3.9" in said


def test_a_project_that_does_not_name_its_dependencies(root: Path) -> None:
    (root / "pyproject.toml").unlink()

    assert not found(root, "import yaml\nreturn yaml")
    assert found(root, "import not_there_at_all\nreturn not_there_at_all")
