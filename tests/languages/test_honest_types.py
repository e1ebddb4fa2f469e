"""Types written by a language model that saw the prompts and nothing else.

``harbour/replies.json`` holds the replies as they came: written by a language model, not recorded
from an API, unaltered. The prompts ask for pages of ``examples/csharp_dto/api.yaml`` in Python and
TypeScript. One context saw them all, so the code is more even than single calls would give.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from pages import ROOT

from pytest_regen import CallableProvider
from pytest_regen.documents import Document, read_document
from pytest_regen.languages import find_language
from pytest_regen.modes import BEHAVIOUR_CODES
from pytest_regen.regeneration import generate_store, partial_regenerate
from pytest_regen.sources import extract_code
from pytest_regen.stores import RegenStore
from pytest_regen.turns import TemplateProvider
from pytest_regen.validation.stores import validate_store
from pytest_regen.validation.subject import wire_of

REPLIES = Path(__file__).parent / "harbour" / "replies.json"
COUNTS = {
    ("python", "default"): 22,
    ("python", "dataclass"): 6,
    ("python", "typeddict"): 6,
    ("typescript", "default"): 14,
    ("typescript", "zod"): 14,
}


@cache
def document() -> Document:
    """Return the description that the prompts were made from."""
    return read_document(ROOT / "examples" / "csharp_dto" / "api.yaml")


def answered(language: str, profile: str, out: Path) -> list[RegenStore]:
    """Return stores that hold the replies of a profile, the other pages as the template writes."""
    replies: dict[str, dict[tuple[str, int], str]] = {}
    for name, reply in json.loads(REPLIES.read_text("utf-8")).items():
        *whose, method, path, type_name, page = name.split(" ")
        if whose == [language, profile]:
            replies.setdefault(f"{method} {path}", {})[type_name, int(page)] = reply
    assert sum(map(len, replies.values())) == COUNTS[language, profile]
    return [
        put_in(pages, operation, language, profile, out / str(number))
        for number, (operation, pages) in enumerate(replies.items())
    ]


def put_in(
    pages: Mapping[tuple[str, int], str], operation: str, language: str, profile: str, out: Path
) -> RegenStore:
    """Return the store of an operation with these replies, whatever is wrong with them."""
    made = generate_store(
        document(),
        operation,
        out,
        provider=TemplateProvider(),
        language=language,
        profile=profile,
        ignore=BEHAVIOUR_CODES,
    )
    store = RegenStore.open(made.plan.path)
    by_prompt = {
        prompt.user: reply
        for name in dict.fromkeys(name for name, _ in pages)
        for page, reply in as_planned(store, name, pages).items()
        for prompt in store.prompts_of(name)
        if prompt.page == page
    }
    asked: dict[str, list[int]] = {}
    for name, page in pages:
        asked.setdefault(name, []).append(page)
    partial_regenerate(
        made.plan.path,
        list(asked),
        asked,
        provider=CallableProvider(lambda messages: by_prompt[messages[-1]["content"]]),
        accept_any=True,
        ignore=BEHAVIOUR_CODES,
    )
    return RegenStore.open(made.plan.path)


def as_planned(
    store: RegenStore, name: str, pages: Mapping[tuple[str, int], str]
) -> Mapping[int, str]:
    """Return the replies about a type, their members on the pages that ask for them today."""
    replies = {page: reply for (other, page), reply in pages.items() if other == name}
    units = [prompt.fields for prompt in store.prompts_of(name)]
    if len(units) == 1 or 1 not in replies:
        return replies
    language, type_ = find_language(store.ir.language), store.plan.types[name]
    codes = [
        extract_code(reply, language=language, type_name=name)
        for _, reply in sorted(replies.items())
    ]
    whole = language.stitch(codes, name=name, is_enum=False).text
    wires = {wire_of(member) for member in language.read(whole).declarations[0].members}
    rest = [unit for unit in type_.units if unit not in wires]
    if rest:
        profile = store.envelope.profile
        more = language.write_page(type_, rest, "fields_only", profile=profile)
        whole = language.stitch([whole, more], name=name, is_enum=False).text
    split = language.split(whole, name=name, units=units)
    return {page: f"```\n{code}\n```" for page, code in enumerate(split, 1)}


SAMPLE = {("typescript", "zod")}
"""Where reading is tried in every run."""


@pytest.mark.parametrize(
    ("language", "profile"),
    [pytest.param(*each, marks=() if each in SAMPLE else pytest.mark.sweep) for each in COUNTS],
)
def test_first_tries_read_well(language: str, profile: str, tmp_path: Path) -> None:
    """None of 62 first tries has an issue that reading shows."""
    for store in answered(language, profile, tmp_path):
        results = validate_store(store, ignore=(*BEHAVIOUR_CODES, "REVIEW"))

        assert not [issue for result in results.values() for issue in result.issues]
