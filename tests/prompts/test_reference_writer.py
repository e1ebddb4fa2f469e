"""The reference writer can be trusted: what it calls correct parses, what it spoils is spoilt."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kite_ir import kite_ir
from reference_writer import (
    MISTAKES,
    STYLES,
    Mistake,
    PageRequest,
    ReferenceWriter,
    Style,
    UnreadableRequestError,
    parse_request,
    request_body,
)
from tables import each
from tree_sitter import Node

from pytest_regen.languages import find_language
from pytest_regen.languages.csharp.tree import parse
from pytest_regen.prompts import PromptEntry, build_prompts, correction_block, with_correction
from pytest_regen.validation.issues import Issue

CSHARP = find_language("csharp")
PROMPTS = (
    *build_prompts(kite_ir(), language=CSHARP),
    *build_prompts(kite_ir(), language=CSHARP, profile="xchange"),
)
PAGES = [parse_request(request_body(entry.system, entry.user)) for entry in PROMPTS]


def body_of(entry: PromptEntry, corrections: list[Issue | str] | None = None) -> dict[str, object]:
    """Return the request for a page, with corrections or without."""
    user = with_correction(entry.user, correction_block(corrections or []))
    return request_body(entry.system, user)


def code_in(reply: str, page: PageRequest, style: Style) -> str:
    """Return the code of a reply in ``style`` as a whole file."""
    text = reply.removeprefix("\ufeff").replace("\r\n", "\n")
    marks = {"bare": "", "long": "````", "tilde": "~~~"}
    if mark := marks.get(style.reply, "```"):
        text = text[text.index(mark) :].split("\n", 1)[1]
        text = text[: text.rindex(f"\n{mark}")]
    if page.is_first or style.continuation == "wrapped":
        return text
    return f"{'enum' if page.is_enum else 'class'} Wrapper\n{{\n{text}\n}}"


def faults(code: str) -> list[str]:
    """Return what the grammar finds wrong."""
    nodes = walk(parse(code.encode("utf-8", "replace")).root_node)
    return [
        f"{node.start_point.row}: {node.type}" for node in nodes if node.is_error or node.is_missing
    ]


@each("style", STYLES, ids=lambda style: style.name)
def test_every_style_parses(style: Style) -> None:
    """What the writer writes is C# without a syntax error, on every page and in every style."""
    wrong = {}
    for entry, page in zip(PROMPTS, PAGES, strict=True):
        code = code_in(ReferenceWriter(style.name)(body_of(entry)), page, style)
        if found := faults(code):
            wrong[entry.key] = found, code

    assert not wrong


@each("style", STYLES, ids=lambda style: style.name)
def test_every_style_writes_each_field_once(style: Style) -> None:
    """The members in the tree are as many as the page lists, whatever comments hold."""
    for entry, page in zip(PROMPTS, PAGES, strict=True):
        code = code_in(ReferenceWriter(style.name)(body_of(entry)), page, style)

        assert len(members(code)) == len(page.units), entry.key


def members(code: str) -> list[Node]:
    """Return the nodes that declare a property, a positional parameter or an enum member."""
    kinds = {"property_declaration", "parameter", "enum_member_declaration"}
    return [node for node in walk(parse(code.encode()).root_node) if node.type in kinds]


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and all below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def test_all_choices_are_made_by_some_style() -> None:
    """The styles cover the decisions: shapes, arrays, accessors, required, order, line ends."""
    made = {name: {getattr(style, name) for style in STYLES} for name in Style.__slots__}

    assert len(STYLES) >= 12
    assert made["shape"] == {"class", "record", "positional", "positional_body"}
    assert made["array"] == {"as asked", "List", "[]", "IReadOnlyList"}
    assert made["accessor"] == {"init", "set"}
    assert made["required"] == {"keyword", "default!"}
    assert made["continuation"] == {"delimited", "bare", "wrapped"}
    assert made["newline"] == {"\n", "\r\n"}
    assert made["byte_order_mark"] == {True, False}


def test_there_are_enough_mistakes() -> None:
    """Every mistake can be made on some page of the sample, and changes what is written there."""
    unmade = []
    for name, mistake in MISTAKES.items():
        pages = [entry for entry, page in zip(PROMPTS, PAGES, strict=True) if mistake.applies(page)]
        written = [
            ReferenceWriter(0, mistake=name)(body_of(entry))
            != ReferenceWriter(Style("spoilt").with_(mistake.style))(body_of(entry))
            for entry in pages
        ]
        if not written or not all(written):
            unmade.append(name)

    assert len(MISTAKES) >= 30
    assert not unmade


SYNTAX = [
    name
    for name, mistake in MISTAKES.items()
    if mistake.expects == (frozenset({"SYNTAX"}),) and not mistake.is_grammatical
]


@pytest.mark.parametrize("name", SYNTAX)
def test_a_fault_of_syntax_is_one(name: str) -> None:
    """What is said to be SYNTAX is an error in the tree, or a type left open, on every page."""
    style = Style("spoilt").with_(MISTAKES[name].style)
    unnoticed = [
        entry.key
        for entry, page in zip(PROMPTS, PAGES, strict=True)
        if MISTAKES[name].applies(page)
        and not faults(code_in(ReferenceWriter(style, mistake=name)(body_of(entry)), page, style))
    ]

    assert not unnoticed


def corrections_for(mistake: Mistake, page: PageRequest) -> list[Issue | str]:
    """Return the issues that name the mistake on that page."""
    fields = mistake.fields(page) or (None,)
    return [
        Issue.of(min(codes), "It is wrong.", type_name=page.type_name, field=fields[0])
        for codes in mistake.expects
    ]


@each("name", MISTAKES)
def test_a_mistake_is_repeated_until_it_is_corrected(name: str) -> None:
    """Only a block in the right form and place, with the right code and field, ends the mistake."""
    entry, page = next(
        (entry, page)
        for entry, page in zip(PROMPTS, PAGES, strict=True)
        if MISTAKES[name].applies(page)
    )
    writer, mistake = ReferenceWriter("record", mistake=name, target=page.key), MISTAKES[name]
    right = ReferenceWriter("record")(body_of(entry))
    named = corrections_for(mistake, page)
    other_code: list[Issue | str] = [Issue.of("REVIEW", "It is wrong.", field=page.type_name)]
    other_field: list[Issue | str] = [
        Issue.of(issue.code, "It is wrong.", field="quite another")
        for issue in named
        if isinstance(issue, Issue)
    ]
    misplaced = body_of(entry)
    misplaced["messages"] = [
        {"role": "user", "content": f"{entry.user}\n{correction_block(named)}\n"}
    ]
    unfinished = with_correction(entry.user, correction_block(named).replace("Do not omit", "Omit"))

    spoilt = writer(body_of(entry))
    assert spoilt != right
    assert writer(body_of(entry, other_code)) == spoilt
    assert writer(misplaced) == spoilt
    assert writer(request_body(entry.system, unfinished)) == spoilt
    if mistake.fields(page):
        assert writer(body_of(entry, other_field)) == spoilt
    assert writer(body_of(entry, named)) == right


def test_a_mistake_stays_on_its_page() -> None:
    """Every page but the target is written as it should be."""
    target = PAGES[1].key
    writer, right = ReferenceWriter(mistake="drop_field", target=target), ReferenceWriter()
    changed = [
        page.key
        for entry, page in zip(PROMPTS, PAGES, strict=True)
        if writer(body_of(entry)) != right(body_of(entry))
    ]

    assert set(changed) == {target}


def test_an_expectation_is_told() -> None:
    """A test learns what a validator must find, and where."""
    entry = PROMPTS[1]
    told = ReferenceWriter(mistake="drop_field").expectation(body_of(entry))

    assert told is not None
    assert (told.type_name, told.page) == (entry.type_name, entry.page)
    assert told.codes == (frozenset({"MISSING_FIELD"}),)
    assert told.fields == (str(entry.fields[0]),)
    assert ReferenceWriter().expectation(body_of(entry)) is None


def test_a_cut_reply_goes_on_where_it_stopped() -> None:
    """After its own words in the conversation, the writer gives the rest of the reply."""
    entry = PROMPTS[0]
    whole = ReferenceWriter()(body_of(entry))
    body = body_of(entry)
    body["messages"] = [
        {"role": "user", "content": entry.user},
        {"role": "assistant", "content": whole[:300]},
        {"role": "user", "content": "Go on."},
    ]

    assert whole[:300] + ReferenceWriter()(body) == whole


def test_other_requests_are_refused() -> None:
    """Text that asks for no page is an error of the test, not a reply."""
    with pytest.raises(UnreadableRequestError):
        ReferenceWriter()(request_body(PROMPTS[0].system, "Hello."))
    with pytest.raises(UnreadableRequestError):
        ReferenceWriter()(request_body("Be brief.", PROMPTS[0].user))


def test_the_writer_knows_nothing_of_the_package() -> None:
    """Importing it imports no module of the package under test."""
    support = Path(__file__).parents[1] / "support"
    program = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import reference_writer;"
        "print(json.dumps([name for name in sys.modules if 'regen' in name]))"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", program, str(support)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(run.stdout) == []


def test_descriptions_follow_the_rule() -> None:
    """A type's own is written where it is declared; of one above 200 characters a sentence is."""
    entry = next(entry for entry in PROMPTS if '"description": "' in entry.user)
    user = entry.user.replace('"description": "', f'"description": "{"Long. " * 40}', 1)
    user = re.sub(r"^DESCRIPTION: .*$", 'DESCRIPTION: "A thing."', user, flags=re.MULTILINE)

    reply = ReferenceWriter()(request_body(entry.system, user))

    assert '[Description("Long.")]' in reply
    assert '[Description("A thing.")]\npublic' in reply
