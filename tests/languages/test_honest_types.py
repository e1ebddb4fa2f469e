"""Types written by a language model that saw the prompts and nothing else.

``harbour/replies.json`` holds the replies as they came: written by a language model, not recorded
from an API, unaltered. The prompts ask for pages of ``examples/csharp_dto/api.yaml`` in Python and
TypeScript. One context saw them all, so the code is more even than single calls would give.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from pages import ROOT

from pytest_regen.documents import build_ir, read_document
from pytest_regen.languages import find_language
from pytest_regen.prompts import output_mode
from pytest_regen.sources import assemble, extract_code
from pytest_regen.validation import validate_by_type

REPLIES = json.loads((Path(__file__).parent / "harbour" / "replies.json").read_text("utf-8"))
COUNTS = {
    ("python", "default"): 21,
    ("python", "dataclass"): 6,
    ("python", "typeddict"): 6,
    ("typescript", "default"): 14,
    ("typescript", "zod"): 13,
}


@pytest.mark.parametrize(("name", "profile"), COUNTS)
def test_first_tries_read_well(name: str, profile: str) -> None:
    """None of 60 first tries has an issue that reading shows; other types are the template's."""
    language = find_language(name)
    replies: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in sorted(REPLIES, key=lambda key: int(key.rpartition(" ")[2])):
        *whose, method, path, type_name, _ = key.split(" ")
        if whose == [name, profile]:
            code = extract_code(REPLIES[key], language=language, type_name=type_name)
            replies[f"{method} {path}"][type_name].append(code)
    document = read_document(ROOT / "examples" / "csharp_dto" / "api.yaml")

    for operation, by_type in replies.items():
        ir = build_ir(document, document.find(operation), language=language).ir
        written = []
        for type_ in ir.types:
            mode = output_mode(type_.kind, is_root=type_.is_root, page=1)
            right = language.write_page(type_, type_.units, mode, profile=profile)
            pages, is_enum = by_type.get(type_.name, [right]), type_.kind == "enum"
            written.append((type_.name, language.stitch(pages, name=type_.name, is_enum=is_enum)))
        source = assemble([(of, type_.text) for of, type_ in written], name, profile=profile)
        for result in validate_by_type(source, ir, profile=profile).values():
            assert {issue.code for issue in result.issues} <= {"REVIEW"}
    answered = [len(codes) for by_type in replies.values() for codes in by_type.values()]
    assert sum(answered) == COUNTS[name, profile]
