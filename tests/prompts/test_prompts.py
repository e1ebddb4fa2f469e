"""What a store's prompts say: once, in order, the same everywhere, with text kept as data."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kite_ir import HOSTILE, field_named, kite_ir, scalar
from reference_writer import PageRequest, parse_request, request_body
from syrupy.assertion import SnapshotAssertion

from pytest_regen.documents.ir import IR, ArrayOf, Endpoint, FieldIR, Ref, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.prompts import (
    PromptEntry,
    build_prompts,
    output_mode,
    system_prompt,
)
from pytest_regen.prompts.values import OutputMode

CSHARP = find_language("csharp")
MODES = ("full_class", "class_only", "fields_only", "enum_only", "enum_values_only")
HEADINGS = {
    "OUTPUT MODE",
    "ENDPOINT",
    "TYPE",
    "SCHEMA",
    "DESCRIPTION",
    "PRIMARY KEY",
    "VALUES ARE",
    "PAGING",
    "FIELDS",
    "ENUM VALUES",
    "TYPE REFERENCE",
}


def prompts_of(*types: TypeIR, per_page: int | None = None) -> tuple[PromptEntry, ...]:
    """Return the prompts of a store of these types."""
    ir = IR(endpoint=Endpoint(method="GET", path="/v1/x"), language="csharp", types=types)
    return build_prompts(ir, language=CSHARP, fields_per_page=per_page)


def object_of(*fields: FieldIR, name: str = "Kite", description: str | None = None) -> TypeIR:
    """Return an object type."""
    return TypeIR(
        name=name, schema_id=f"#/{name}", kind="object", description=description, fields=fields
    )


def enum_of(*values: str | int, name: str = "Hue") -> TypeIR:
    """Return an enum type."""
    return TypeIR(name=name, schema_id=f"#/{name}", kind="enum", enum_values=values)


def understood(entry: PromptEntry) -> PageRequest:
    """Return the request as a reader of its text alone understands it."""
    return parse_request(request_body(entry.system, entry.user))


def structure(user: str) -> list[str]:
    """Return the headings, in order: what stands before the colon in the first column."""
    return [line.split(":")[0] for line in user.splitlines() if line and not line.startswith(" ")]


def modes(entries: tuple[PromptEntry, ...]) -> Iterator[tuple[OutputMode, PromptEntry]]:
    """Yield each entry with its mode."""
    kinds = {type_.name: type_.kind for type_ in kite_ir().types}
    for entry in entries:
        kind = kinds[entry.type_name]
        yield output_mode(kind, is_root=entry.is_root, page=entry.page), entry


@pytest.mark.parametrize("mode", MODES)
def test_a_page_of_each_mode_reads_as_agreed(mode: str, snapshot: SnapshotAssertion) -> None:
    """The wording is fixed: a change of one character is seen in review."""
    entries = build_prompts(kite_ir(), language=CSHARP)

    assert next(entry.user for found, entry in modes(entries) if found == mode) == snapshot


@pytest.mark.parametrize("profile", ["default", "xchange"])
def test_the_instructions_read_as_agreed(profile: str, snapshot: SnapshotAssertion) -> None:
    """So are the instructions, per profile."""
    assert system_prompt(CSHARP.wording(profile)) == snapshot


def test_the_instructions_are_the_same_on_every_page() -> None:
    """One system prompt per language and profile, so that it is cached after the first page."""
    one = build_prompts(kite_ir(), language=CSHARP)
    other = prompts_of(object_of(field_named("a")), enum_of("b"))

    assert len({entry.system for entry in (*one, *other)}) == 1
    said = [line for line in one[0].system.splitlines() if len(line) > 20]
    assert not [line for entry in one for line in said if line in entry.user]


def test_a_page_asks_for_its_units_and_no_others() -> None:
    """What a reader finds on a page is what the entry says it must produce."""
    for mode, entry in modes(build_prompts(kite_ir(), language=CSHARP)):
        page = understood(entry)

        assert page.mode == mode
        assert page.type_name == entry.type_name
        assert (page.page, page.total_pages) == (entry.page, entry.total_pages)
        assert tuple(unit.wire for unit in page.units) == entry.fields


def test_a_page_with_gaps_tells_its_ranges() -> None:
    """A field added in the middle joins a page it does not follow."""
    type_ = object_of(*(field_named(f"f{number}") for number in range(1, 7)))
    ir = IR(endpoint=Endpoint(method="GET", path="/"), language="csharp", types=(type_,))
    plan = {"Kite": (("f1", "f2", "f4"), ("f3", "f6", "f5"))}
    entries = build_prompts(ir, language=CSHARP, stored_plan=plan)

    assert entries[0].fields == ("f1", "f2", "f4")
    assert "fields 1-2, 4 of 6" in entries[0].user
    assert "fields 3, 5-6 of 6" in entries[1].user


def test_every_page_lists_the_types_it_may_use() -> None:
    """Continuation pages too: the correction block's first order names that list."""
    many = [object_of(name=f"Other{number}") for number in range(400)]
    user = object_of(field_named("a"), field_named("b", ArrayOf(items=Ref(name="Other7"))))
    entries = prompts_of(user, *many, per_page=1)

    assert "used on this page: none" in entries[0].user
    assert 'used on this page: "Other7" (object)' in entries[1].user
    assert "Other8" not in entries[1].user
    for entry in build_prompts(kite_ir(), language=CSHARP):
        names = {name for name, _ in understood(entry).references}
        assert names == {type_.name for type_ in kite_ir().types}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("a", "b"), "strings"),
        ((1, 2), "integers"),
        ((1, 2**31), "integers, exceeding 32 bits"),
        (("a", 1), "strings and integers"),
    ],
)
def test_the_kind_of_values_is_told_on_every_page(values: tuple[str | int, ...], kind: str) -> None:
    """Page 1 declares the enum for values that another page lists."""
    entries = prompts_of(enum_of(*values), per_page=1)

    assert {understood(entry).value_kind for entry in entries} == {kind}


def test_long_text_is_cut_and_says_so() -> None:
    """A description cannot fill a request, and the reader is told that there was more."""
    long = field_named("a").model_copy(
        update={"description": "x" * 5000, "constraints": {"pattern": "y" * 5000}}
    )
    (entry,) = prompts_of(object_of(long, description="z" * 5000))

    assert "first 600 of 5000 characters" in entry.user
    assert "first 1000 of 5000 characters" in entry.user
    assert "constraints_shown" in entry.user
    assert len(entry.user) < 3_000


PROGRAM = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from kite_ir import kite_ir
from pytest_regen.languages import find_language
from pytest_regen.prompts import build_prompts
entries = [entry.to_json() for entry in build_prompts(kite_ir(), language=find_language("csharp"))]
print(hashlib.sha256(json.dumps(entries).encode()).hexdigest())
"""


def test_prompts_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Hash order, working folder, locale and time zone leave no trace."""
    entries = [entry.to_json() for entry in build_prompts(kite_ir(), language=CSHARP)]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "4711",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Tokyo",
    }
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[1] / "support")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment,
    )

    assert run.stdout.strip() == hashlib.sha256(json.dumps(entries).encode()).hexdigest()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_no_structure(text: str) -> None:
    """In any place a document can put it, text leaves the headings and the fields as they are."""
    calm, wild = (
        prompts_of(
            object_of(
                FieldIR(
                    json_name=word,
                    type=Ref(name="Hue"),
                    description=word,
                    constraints={word: [word, {word: word}]},
                ),
                description=word,
            ),
            TypeIR(
                name="Hue",
                schema_id=word,
                kind="enum",
                description=word,
                enum_values=(word, "x"),
                enum_names=(word, word),
            ),
        )
        for word in ("calm", text)
    )

    for one, other in zip(calm, wild, strict=True):
        assert structure(other.user) == structure(one.user)
        assert set(structure(other.user)) <= HEADINGS
        assert len(other.user.splitlines()) == len(one.user.splitlines())
        assert [unit.wire for unit in understood(other).units] == [*other.fields]
        assert not understood(other).corrections


def test_the_documented_page_is_a_real_one() -> None:
    """The sample in the docs is what a store would hold."""
    name = "KiteDataObject"
    kite = TypeIR(
        name=name,
        schema_id="#/components/schemas/Kite",
        is_root=True,
        kind="object",
        description="A kite in the air.",
        primary_key="kite_id",
        fields=(
            *(FieldIR(json_name=field, type=scalar()) for field in ("kite_id", "tail", "wind")),
            FieldIR(json_name="knots", type=ArrayOf(items=scalar()), description="Knots used."),
            FieldIR(json_name="colour", type=Ref(name="KiteColour"), required=True),
        ),
    )
    ir = IR(
        endpoint=Endpoint(method="GET", path="/v1/kites/{id}"),
        language="csharp",
        types=(kite, enum_of("red", name="KiteColour")),
    )
    page = build_prompts(ir, language=CSHARP, fields_per_page=3)[1]
    docs = Path(__file__).parents[2] / "docs" / "internals.md"

    assert page.type_name == name
    assert f"```\n{page.user}```\n" in docs.read_text("utf-8")
