"""What may take the place of a stored output: never what cannot be read."""

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_factory import GOOD, make_store
from unit_asking import answering, ask_for_unit

from pytest_regen.regeneration import heal_store, partial_regenerate
from pytest_regen.regeneration.store_place import StorePlace
from pytest_regen.stores import RegenStore

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


def owner_after(path: Path) -> str:
    """Return what is stored for ``Owner``."""
    return RegenStore.open(path).pages_of("Owner")[0].output


def a_store(folder: Path, stored: str) -> Path:
    """Return a new store that holds ``stored`` for ``Owner``."""
    number = sum(1 for _ in folder.iterdir())
    return make_store(folder / str(number), {("Owner", 1): stored}).path


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
        ask_for_unit(StorePlace(path), "Owner", settings=said, feedback=["no"], check=list)
    else:
        partial_regenerate(path, ["Owner"], settings=said, max_retries=2)

    assert owner_after(path) == stored


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


def test_what_weakens_replaces_nothing_and_the_correction_says_why(tmp_path: Path) -> None:
    """It goes to the page at fault, with its line; the next answer is right."""
    key = ("ProjectDataObject", 1)
    path = make_store(tmp_path / "store", {key: GOOD[key].replace('("name")', '("nmae")')}).path
    silent = GOOD[key].replace("public class", "#pragma warning disable CS8618\npublic class")
    asked: list[str] = []

    heal_store(path, settings=answering(silent, GOOD[key], asked=asked), attempts=2)

    assert RegenStore.open(path).pages_of(key[0])[0].output == GOOD[key]
    assert "[WEAKENED] adds '#pragma warning disable CS8618'" in asked[1]
    assert "Line 1: #pragma warning disable CS8618" in asked[1]
    assert len(asked) == 2
