"""The reference writer can be trusted: it knows the prompts alone, and heeds corrections alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kite_ir import kite_ir
from reference_writer import (
    MISTAKES,
    Mistake,
    PageRequest,
    ReferenceWriter,
    parse_request,
    request_body,
)

from pytest_regen.languages import find_language
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


def corrections_for(mistake: Mistake, page: PageRequest) -> list[Issue | str]:
    """Return the issues that name the mistake on that page."""
    fields = mistake.fields(page) or (None,)
    return [
        Issue.of(min(codes), "It is wrong.", type_name=page.type_name, field=fields[0])
        for codes in mistake.expects
    ]


@pytest.mark.parametrize("name", ["drop_field", "missing_semicolon", "class_for_enum", "empty"])
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
