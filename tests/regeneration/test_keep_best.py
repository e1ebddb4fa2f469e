"""What may take the place of a stored output: never what cannot be read."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_asking import heal_type
from store_factory import GOOD, make_store

from pytest_regen.regeneration import TurnSettings, heal_store, partial_regenerate
from pytest_regen.regeneration.policies import merge_findings
from pytest_regen.stores import RegenStore
from pytest_regen.turns import CallableProvider
from pytest_regen.validation import Issue

OWNER = GOOD["Owner", 1]
WRONG = OWNER.replace('("name")', '("nmae")').replace('("state")', '("stat")')
"""Code with four errors: two fields are missing, two are invented."""

CUT = st.integers(1, len(OWNER) - 1).map(lambda end: OWNER[:end])
"""The right code without its end: the braces do not match, or nothing of the class is left."""

EMPTY = st.text(" \n\t", max_size=5)
PROSE = st.sampled_from(
    [
        "I am sorry, I cannot help with that.",
        "The fields are name and state.",
        "// Owner goes here",
        "public enum Owner { A }",
        "public class Other { }\npublic class Another { }",
    ]
)
FENCED = (EMPTY | CUT).map(lambda text: f"```csharp\n{text}\n```")
UNREADABLE = EMPTY | PROSE | CUT | FENCED


def answering(*replies: str) -> TurnSettings:
    """Return settings whose model says ``replies`` one after the other, the last for ever."""
    left = list(replies)
    return TurnSettings(CallableProvider(lambda _: left.pop(0) if len(left) > 1 else left[0]))


def owner_after(path: Path) -> str:
    """Return what is stored for ``Owner``."""
    return RegenStore.open(path).pages_of("Owner")[0].output


def a_store(folder: Path, stored: str) -> Path:
    """Return a new store that holds ``stored`` for ``Owner``."""
    number = sum(1 for _ in folder.iterdir())
    return make_store(folder / str(number), {("Owner", 1): stored}).path


def passes() -> Sequence[str]:
    """Stand for a test that has nothing to say of the candidate."""
    return ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(reply=UNREADABLE, stored=st.sampled_from([OWNER, WRONG]), work=st.integers(0, 2))
def test_what_cannot_be_read_never_replaces_code(
    tmp_path: Path, reply: str, stored: str, work: int
) -> None:
    """Neither healing, by the validator or by a test, nor named work takes it."""
    path = a_store(tmp_path, stored)
    said = answering(reply)

    if work == 0:
        heal_store(path, settings=said, attempts=2)
    elif work == 1:
        heal_type(path, "Owner", settings=said, feedback=["no"], check=passes)
    else:
        partial_regenerate(path, ["Owner"], settings=said, attempts=2)

    assert owner_after(path) == stored


@pytest.mark.parametrize("page", [1, 2])
def test_a_page_of_several_is_held_to_the_same(tmp_path: Path, page: int) -> None:
    """Prose for one page of a type does not take the place of four wrong fields there."""
    key = ("ProjectDataObject", page)
    wrong = re.sub(r'\("(\w+)"\)', r'("\1x")', GOOD[key])
    path = make_store(tmp_path / "store", {key: wrong}).path

    partial_regenerate(path, [key[0]], {key[0]: [page]}, settings=answering("I am sorry."))

    assert RegenStore.open(path).pages_of(key[0])[page - 1].output == wrong


def test_code_with_errors_replaces_what_cannot_be_read(tmp_path: Path) -> None:
    """Prose has the errors of all its fields, so that code with fewer is an improvement."""
    nearly = OWNER.replace('("name")', '("nmae")')
    path = a_store(tmp_path, "I am sorry.")

    heal_store(path, settings=answering(nearly), attempts=1)

    assert owner_after(path) == nearly


def test_the_first_output_of_a_page_is_taken_as_it_is_read(tmp_path: Path) -> None:
    """Where a page was never written, code with a fault is better than nothing."""
    half = OWNER.replace("get; set;", "get; set", 1)
    path = a_store(tmp_path, OWNER)
    pages = json.loads((path / "pages.json").read_text("utf-8"))
    pages["pages"] = [page for page in pages["pages"] if page["type_name"] != "Owner"]
    (path / "pages.json").write_text(json.dumps(pages), "utf-8")
    (path / "ProjectDataObject.cs").unlink()

    heal_store(path, settings=answering(half), type_names=["Owner"], attempts=1)

    assert owner_after(path) == half


def test_a_finding_on_another_line_is_not_repeated() -> None:
    """A correction lists what is wrong with the new output, then what only the stored one has."""
    here = Issue.of("MISSING_FIELD", "field 'a' is missing", type_name="T", line=3, field="a")
    moved = replace(here, line=9)
    other = Issue.of("MISSING_FIELD", "field 'b' is missing", type_name="T", line=4, field="b")

    assert merge_findings([here], [moved, other]) == (here, other)
