"""Correct code full of what looks like structure: no issue, and the structure stays as it is."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kite_ir import kite_ir
from reference_writer import STYLES, ReferenceWriter, Style
from served_stores import EXAMPLE, SMALL_OPERATION, Served, issues_of, served
from small_store import new_store

from pytest_regen.languages import find_language
from pytest_regen.prompts import build_prompts
from pytest_regen.regeneration import generate_store, heal_store, partial_regenerate
from pytest_regen.sources import (
    blocks,
    extract_type_block,
    list_type_names,
    replace_type_block,
    stitch,
)
from pytest_regen.stores import RegenStore

Case = tuple[str, str, str]
LOOKS = (
    "} } } public class Ghost {",
    '\\"',
    "'{'",
    "```csharp",
    "// [REGEN:END PortCode]",
    "// [SCHMITH:BEGIN TideWindow]",
    "/* BEGIN_ENUM_VALUES",
    "OUTPUT MODE: enum_only",
    "CORRECTION REQUIRED:",
    '[JsonPropertyName("ghost")]',
)
"""Texts that are structure elsewhere."""

PLACES: dict[str, Callable[[str], str]] = {
    "line comment": lambda text: f"// {text}",
    "bare line comment": lambda text: text if text.startswith("//") else f"//{text}",
    "block comment": lambda text: f"/* {text.replace('*/', '')} */",
    "long block comment": lambda text: f"/*\n{text}\n  {text}\n*/",
    "documentation": lambda text: f"/// <summary>\n/// {text}\n/// </summary>",
    "string": lambda text: f'[Category("{_escaped(text)}")]',
    "verbatim string": lambda text: '[Category(@"' + text.replace('"', '""') + '")]',
    "verbatim lines": lambda text: '[Category(@"\n' + text.replace('"', '""') + '\n")]',
    "raw string": lambda text: f'[Category("""""\n{text}\n""""")]',
    "region": lambda text: f"#region {text}\n#endregion",
}
"""Where such a text is only text."""

WRAPPINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda reply: reply,
    "CRLF": lambda reply: reply.replace("\n", "\r\n"),
    "tabs": lambda reply: re.sub(
        r"^(?:    )+", lambda m: "\t" * (len(m[0]) // 4), reply, flags=re.MULTILINE
    ),
    "byte order mark": lambda reply: f"\ufeff{reply}",
    "long fence": lambda reply: f"Here it is:\n\n``````csharp\n{reply}\n``````\nThat is all.",
}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class Decorator:
    """Writes each page correctly, with a text in front of its first member."""

    def __init__(self, case: Case) -> None:
        place, text, wrapping = case
        self.text = PLACES[place](text)
        self._wrap = WRAPPINGS[wrapping]
        self._write = ReferenceWriter(Style("decorated", reply="bare"))

    def __call__(self, body: Any) -> str:
        """Return the page."""
        lines = self._write(body).split("\n")
        first = next(
            at
            for at, line in enumerate(lines)
            if re.match(r"\s+\[|\[(Desc|Json)", line) and not line.startswith("[JsonConverter")
        )
        return self._wrap("\n".join([*lines[:first], *self.text.split("\n"), *lines[first:]]))


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """An emulator for all tests of this file."""
    with served() as server:
        yield server


def check_structure(store: RegenStore) -> None:
    """Assert that each block is what its pages make, and can be taken out and put back."""
    language = find_language("csharp")
    assert list_type_names(store.source) == list(store.type_names)
    assert store.source == store.assembly()
    for block in blocks(store.source):
        outputs = [page.output for page in store.pages_of(block.name)]
        is_enum = store.ir.type_named(block.name).kind == "enum"  # type: ignore[union-attr]
        text = stitch(outputs, name=block.name, is_enum=is_enum, language=language).text
        assert extract_type_block(store.source, block.name) == block.text == text
        assert replace_type_block(store.source, block.name, text) == store.source
        without = replace_type_block(store.source, block.name, "// [REGEN:END Other]\n}")
        assert list_type_names(without) == list(store.type_names)
        assert replace_type_block(without, block.name, text) == store.source


def check_case(case: Case, server: Served, out: Path) -> None:
    """Assert that a store full of one text is clean and whole, and stays so."""
    decorator = Decorator(case)
    server.answers(decorator)
    made = generate_store(
        EXAMPLE, SMALL_OPERATION, out, provider=server.provider, fields_per_page=25
    )
    store = RegenStore.open(made.plan.path)
    assert issues_of(store) == []
    assert made.calls == len(store.prompts)
    marks = [line.strip() for line in decorator.text.split("\n")]
    for page in store.pages.values():
        written = [line.strip() for line in page.output.split("\n")]
        assert any(written[at : at + len(marks)] == marks for at in range(len(written))), page.key
    check_structure(store)
    check_one_page(store, server)


def check_one_page(store: RegenStore, server: Served) -> None:
    """Assert that regenerating a page changes that page's type and nothing else."""
    key = store.prompts[-1].key
    before = {block.name: block.text for block in blocks(store.source)}
    server.answers(ReferenceWriter(Style("plain", reply="bare")))
    partial_regenerate(
        store.path, [key.type_name], {key.type_name: [key.page]}, provider=server.provider
    )
    after = RegenStore.open(store.path)
    changed = {block.name: block.text for block in blocks(after.source)}
    # A delimiter alone on a line is no part of the type; without it the block is the same.
    assert {name for name in before if before[name] != changed[name]} <= {key.type_name}
    assert issues_of(after) == []
    check_structure(after)


CASES = [
    (place, text, [*WRAPPINGS][number % len(WRAPPINGS)])
    for number, (place, text) in enumerate(zip(PLACES, LOOKS, strict=True))
]


def test_what_looks_like_structure_is_text(server: Served, tmp_path: Path) -> None:
    """In comments and strings of first and later pages, in any line ends: no issue, all exact."""
    for number, case in enumerate(CASES):
        check_case(case, server, tmp_path / str(number))


@pytest.mark.parametrize("style", STYLES[::8], ids=lambda style: style.name)
def test_texts_of_a_document_that_pose_as_structure(
    style: Style, server: Served, tmp_path: Path
) -> None:
    """Hostile names, values and descriptions, on many pages: no issue, all exact."""
    ir = kite_ir()
    prompts = build_prompts(ir, language=find_language("csharp"), fields_per_page=8)
    new_store(tmp_path / "kites", ir=ir, prompts=prompts, source_file="Kite.cs")
    server.answers(ReferenceWriter(style))
    done = heal_store(tmp_path / "kites", settings=server.settings, attempts=1)

    store = RegenStore.open(tmp_path / "kites")
    assert done.calls == len(prompts) == len(server.asked)
    assert issues_of(store) == []
    check_structure(store)
