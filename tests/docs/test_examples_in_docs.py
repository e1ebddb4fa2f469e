"""The code on pages of the docs that have no test of their own runs as it stands there."""

import secrets
import uuid
from pathlib import Path

import pytest
import yaml
from pages import FOLLOWED, ROOT, blocks
from plugin_project import emulated
from store_factory import make_store

from pytest_regen.emulator import load_script
from pytest_regen.emulator.values import Fault

OF_THEIR_OWN = frozenset(
    {
        *FOLLOWED,
        "cassettes",
        "context",
        "index",  # the code of README, which is followed
        "sessions",
    }
)
"""Pages whose Python another test runs; every other page, new ones too, is run here."""

PAGES = [
    page.stem
    for page in sorted((ROOT / "docs").glob("*.md"))
    if "```python" in page.read_text("utf-8") and page.stem not in OF_THEIR_OWN
]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block after the other, in a folder with a store and an example, the API emulated."""
    make_store(tmp_path / "generated" / "GET_v1_projects")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_REGEN_SEAL_KEY", secrets.token_hex(32))

    with emulated(monkeypatch, lambda _: "public class Invoice { }"):
        exec("\n".join(blocks(f"docs/{page}.md", "python")), {})


def test_the_test_on_the_page_of_the_emulator_passes(pytester: pytest.Pytester) -> None:
    """Whoever copies it into a file has a test that passes, with nothing else at hand."""
    tests = (text for text in blocks("docs/emulator.md", "python") if "def test_" in text)
    pytester.makepyfile(test_page=next(tests))

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)


def test_the_conftest_for_suites_of_pytest_vcr_plays_theirs(pytester: pytest.Pytester) -> None:
    """A cassette where pytest-vcr put it, of a page with another id."""
    [conftest] = (text for text in blocks("docs/cassettes.md", "python") if "matcher" in text)
    address = "http://127.0.0.1:9/pages"
    pytester.makeconftest(conftest)
    pytester.makepyfile(
        test_pages=f"""
        import urllib.request
        import uuid

        import pytest

        @pytest.mark.vcr
        def test_page():
            with urllib.request.urlopen(f"{address}/{{uuid.uuid4()}}") as answer:
                assert answer.read() == b"{{}}"
        """
    )
    uri, status = f"{address}/{uuid.uuid4()}", {"code": 200, "message": "OK"}
    recorded = {
        "request": {"method": "GET", "uri": uri, "body": None, "headers": {}},
        "response": {"status": status, "headers": {}, "body": {"string": "{}"}},
    }
    (pytester.path / "cassettes").mkdir()
    (pytester.path / "cassettes/test_page.yaml").write_text(
        yaml.safe_dump({"version": 1, "interactions": [recorded]}), "utf-8"
    )

    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_scripts_of_the_emulator_are_some(tmp_path: Path) -> None:
    """They are read, and what they show is what the tables below them describe."""
    script, lost = tmp_path / "replies.yaml", tmp_path / "lost.yaml"
    for file, text in zip((script, lost), blocks("docs/emulator.md", "yaml"), strict=True):
        file.write_text(text, "utf-8")
    (tmp_path / "replies").mkdir()
    (tmp_path / "replies" / "Pet.cs").write_text("public class Pet { }", "utf-8")

    first, second = load_script(script).rules
    batches = load_script(lost)

    assert [isinstance(step.answer, Fault) for step in first.steps] == [True, False]
    assert not second.match.user
    assert [batches.next_batch().fault is None for _ in range(3)] == [False, True, True]
