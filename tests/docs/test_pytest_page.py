"""What docs/pytest.md lists is complete, and its settings and hooks are accepted."""

from dataclasses import asdict
from pathlib import Path

import pytest
from pages import ROOT, blocks
from store_factory import make_store

from pytest_regen.pytest_plugin import hookspecs, options
from pytest_regen.settings import Settings, read_settings

PAGE = "docs/pytest.md"
TEXT = (ROOT / PAGE).read_text("utf-8")
OPTIONS = Path(options.__file__).read_text("utf-8")


def test_every_setting_is_shown(tmp_path: Path) -> None:
    """The table is read, and leaves nothing at its default."""
    text = blocks(PAGE, "toml")[1]
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")

    settings = asdict(read_settings(tmp_path))

    assert all(settings[key] != value for key, value in asdict(Settings()).items())
    left = asdict(Settings())["cassettes"]
    assert all(value != left[key] for key, value in settings["cassettes"].items())
    (price,) = settings["price"].values()
    assert None not in price.values()


def test_every_hook_has_a_row_and_the_examples_are_hooks() -> None:
    """Each is listed, and what the page shows has the names of hooks."""
    hooks = [name for name in vars(hookspecs) if name.startswith("pytest_regen_")]
    example = next(text for text in blocks(PAGE, "python") if "def pytest_regen" in text)
    shown: dict[str, object] = {}
    exec(example, shown)

    assert not [name for name in hooks if f"| `{name}(" not in TEXT]
    assert {name for name in shown if name.startswith("pytest_regen_")} < set(hooks)


def test_the_tests_on_the_page_run(pytester: pytest.Pytester) -> None:
    """The one fails with the words that the model would read, the other has nothing to say."""
    pytester.makeini("[pytest]\nregen_stores = generated/*\n")
    make_store(pytester.path / "generated" / "GET_v1_projects")
    tests = [text for text in blocks(PAGE, "python") if "def test_" in text]
    pytester.makepyfile(**{f"test_{number}": text for number, text in enumerate(tests)})

    result = pytester.runpytest_inprocess("test_0.py", "test_1.py")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: call the property DisplayName"])
