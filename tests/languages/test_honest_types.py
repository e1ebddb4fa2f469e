"""Types written by a language model that saw the prompts and nothing else.

``harbour/replies.json`` holds the replies as they came: written by a language model, not recorded
from an API, unaltered. The prompts ask for pages of ``examples/csharp_dto/api.yaml`` in Python and
TypeScript. One context saw them all, so the code is more even than single calls would give.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from pages import ROOT

from pytest_regen.documents import build_ir, read_document
from pytest_regen.documents.ir import EnumValue, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.prompts import output_mode
from pytest_regen.sources import assemble, extract_code
from pytest_regen.validation import validate_by_type
from pytest_regen.validation.subject import wire_of

REPLIES = json.loads((Path(__file__).parent / "harbour" / "replies.json").read_text("utf-8"))
COUNTS = {
    ("python", "default"): 22,
    ("python", "dataclass"): 6,
    ("python", "typeddict"): 6,
    ("typescript", "default"): 14,
    ("typescript", "zod"): 14,
}


def code_of(type_: TypeIR, replies: list[str], language_name: str, profile: str) -> str:
    """Return a type as the replies have it; what no reply was asked for, the language writes."""
    language, is_enum = find_language(language_name), type_.kind == "enum"
    mode = output_mode(type_.kind, is_root=type_.is_root, page=1)

    def joined(codes: list[str]) -> str:
        return language.stitch(codes, name=type_.name, is_enum=is_enum).text

    def first_page(units: Sequence[EnumValue]) -> str:
        return language.write_page(type_, units, mode, profile=profile)

    codes = [extract_code(reply, language=language, type_name=type_.name) for reply in replies]
    has_first = bool(language.read(joined(codes)).declarations)
    whole = joined(codes if has_first else [first_page(type_.units[:1]), *codes])
    (entry,) = language.read(whole).declarations
    wires = {str(wire_of(member)) for member in entry.members}
    rest = [unit for unit in type_.units if str(unit) not in wires]
    if not has_first:
        return joined([first_page([*type_.units[:1], *rest]), *codes])
    mode = "enum_values_only" if is_enum else "fields_only"
    return joined([*codes, *([first_page(rest)] if rest else [])])


@pytest.mark.parametrize(("language", "profile"), COUNTS)
def test_first_tries_read_well(language: str, profile: str) -> None:
    """None of 62 first tries has an issue that reading shows."""
    replies: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in sorted(REPLIES, key=lambda key: int(key.rpartition(" ")[2])):
        *whose, method, path, type_name, _ = key.split(" ")
        if whose == [language, profile]:
            replies[f"{method} {path}"][type_name].append(REPLIES[key])
    said = sum(len(texts) for types in replies.values() for texts in types.values())
    assert said == COUNTS[language, profile]
    document = read_document(ROOT / "examples" / "csharp_dto" / "api.yaml")

    for operation, by_type in replies.items():
        ir = build_ir(document, document.find(operation), language=find_language(language)).ir
        written = [
            (type_.name, code_of(type_, by_type[type_.name], language, profile))
            for type_ in ir.types
        ]
        results = validate_by_type(
            assemble(written, language, profile=profile), ir, profile=profile
        )
        assert not [
            issue
            for result in results.values()
            for issue in result.issues
            if issue.code != "REVIEW"
        ]
