"""One suite that holds every target language against what ``Language`` promises.

Subclass it, name the language, and pytest collects a test per law::

    class TestGleam(LanguageConformance):
        language = "gleam"

Right code is what the language writes itself, see ``Language.write_page``.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import pytest

from pytest_regen.documents import ir as irs
from pytest_regen.documents.ir import ArrayOf, FieldIR, MapOf, Ref, Scalar, TypeIR
from pytest_regen.errors import UsageError
from pytest_regen.languages import Language, find_language, find_weaknesses
from pytest_regen.prompts.values import output_mode
from pytest_regen.sources import assemble, extract_type_block
from pytest_regen.validation import PageText, validate_by_type, validate_generated_code
from pytest_regen.validation.issues import Issue

_NAMES: Final = (
    *("first-name", "first_name", "class", "type", "$id", "2nd", "naïve"),
    *('in "quotes"', "back\\slash", "{braces}", "# no comment", "// nor this"),
)
"""Names of fields that no language takes as they are."""
_PROSE: Final = "I am sorry, but I cannot help with that request."
_CUTS: Final = 40
"""How many prefixes of right code are read."""


class LanguageConformance:
    """The laws of a language; see the module."""

    language: ClassVar[str]
    """Its name, as its entry point has it."""
    profile: ClassVar[str] = "default"

    def write(self, type_: TypeIR) -> str:
        """Return the right code for the whole of a type: what ``Language.write_page`` writes."""
        mode = output_mode(type_.kind, is_root=type_.is_root, page=1)
        return self.target.write_page(type_, type_.units, mode, profile=self.profile)

    # --- what is looked at ------------------------------------------------------------------------

    @property
    def target(self) -> Language:
        """The language under test."""
        return find_language(self.language)

    @property
    def ir(self) -> irs.IR:
        """A root with every kind of field, another object, and an enum of each kind."""
        target = self.target
        root, wind, level, colour = (
            target.type_name(name, is_root=name == "kite")
            for name in ("kite", "wind", "level", "colour")
        )
        expressions: tuple[irs.TypeExpr, ...] = (
            *(Scalar(kind=kind) for kind in ("string", "integer", "number", "boolean", "any")),
            Scalar(kind="string", format="date-time"),
            Ref(name=wind),
            Ref(name=colour),
            ArrayOf(items=Scalar(kind="string")),
            ArrayOf(items=ArrayOf(items=Ref(name=wind))),
            MapOf(values=Scalar(kind="integer")),
            MapOf(values=ArrayOf(items=Ref(name=level))),
        )
        kinds = _fields({f"kind{number}": type_ for number, type_ in enumerate(expressions)})
        odd = _fields(dict.fromkeys(_NAMES, Scalar(kind="string")))
        values = ("sky-blue", "moss green", "Red", "red", "1st", *_NAMES)
        texts = tuple(filter(target.has_enum_member, values))
        types = (
            TypeIR(name=root, schema_id="#/kite", is_root=True, kind="object", fields=kinds),
            TypeIR(name=wind, schema_id="#/wind", kind="object", fields=odd),
            TypeIR(name=level, schema_id="#/level", kind="enum", enum_values=(-1, 0, 1, 7)),
            TypeIR(name=colour, schema_id="#/colour", kind="enum", enum_values=texts),
        )
        endpoint = irs.Endpoint(method="GET", path="/kites/{id}")
        return irs.IR(endpoint=endpoint, language=target.name, types=types)

    def source(self, **codes: str) -> str:
        """Return a source of all types, some of them in other code."""
        written = {type_.name: self.write(type_) for type_ in self.ir.types} | codes
        return assemble(list(written.items()), self.target, profile=self.profile)

    def issues(self, *changed: TypeIR) -> list[Issue]:
        """Return what is wrong with a source in which some types are written otherwise."""
        source = self.source(**{type_.name: self.write(type_) for type_ in changed})
        return list(validate_generated_code(source, self.ir, profile=self.profile).issues)

    # --- reading ----------------------------------------------------------------------------------

    def test_right_code_is_read_and_has_no_issue(self) -> None:
        """Each type is declared once, as what it is, under legal names, and is not weakened.

        It comes back from the file as it was, and a file without types declares nothing. Prose and
        an empty reply are further from legal than code.
        """
        assert not self.issues()
        assert not self.target.read(assemble([], self.target, profile=self.profile)).declarations
        assert self.target.illegality(_PROSE) > 0
        assert self.target.illegality("") > 0
        for type_ in self.ir.types:
            code = self.write(type_)
            names = self.target.member_names(type_)

            assert extract_type_block(self.source(), type_.name) == code
            assert not find_weaknesses(self.target, type_, code, code)
            assert self.target.is_legal_type_name(type_.name), type_.name
            assert list(names) == list(type_.units)
            assert len(set(names.values())) == len(names)
            assert self.target.illegality(code) == 0
            assert self.target.illegality(f"{_PROSE}\n{code}") > 0

    @pytest.mark.parametrize("number", range(4))
    def test_a_mistake_is_found(self, number: int) -> None:
        """Each mistake in a type of the sample is one issue, and nothing else becomes one."""
        type_ = self.ir.types[number]
        for code, members, member in _mistakes(type_):
            wrong = type_.model_copy(update=members)
            issues = [(issue.code, issue.type_name, issue.field) for issue in self.issues(wrong)]
            assert issues == [(code, wrong.name, member)], wrong

    def test_broken_code_is_read_as_far_as_it_goes(self) -> None:
        """Code that ends anywhere, as a reply that reached its limit, never raises."""
        for type_ in self.ir.types:
            code = self.write(type_)
            # A sample of all places, because each is read four times.
            for end in range(0, len(code), max(1, len(code) // _CUTS)):
                broken = code[:end]
                self.target.read(broken)
                self.target.illegality(broken)
                self.target.leaves(broken)
                self.target.stitch([broken, broken], name=type_.name, is_enum=type_.kind == "enum")

    # --- pages and files --------------------------------------------------------------------------

    def test_pages_are_right_and_join_to_the_whole(self) -> None:
        """Code that is taken apart comes together again, and each line tells its page."""
        for type_ in self.ir.types:
            middle = (len(type_.units) + 1) // 2
            halves = type_.units[:middle], type_.units[middle:]
            outputs = self.target.split(self.write(type_), name=type_.name, units=halves)
            pages = tuple(PageText(n + 1, 2, half, outputs[n]) for n, half in enumerate(halves))
            joined = self.target.stitch(outputs, name=type_.name, is_enum=type_.kind == "enum")
            results = validate_by_type(
                self.source(**{type_.name: joined.text}),
                self.ir,
                pages={type_.name: pages},
                profile=self.profile,
            )

            assert not joined.faults
            assert self.target.leaves(joined.text) == self.target.leaves(self.write(type_))
            assert len(joined.line_pages) == joined.text.count("\n") + 1
            assert len(joined.page_lines) == len(joined.line_pages)
            assert set(joined.line_pages) == {1, 2}
            assert not [issue for result in results.values() for issue in result.issues]

    # --- prompts ----------------------------------------------------------------------------------

    def test_examples_are_right(self) -> None:
        """What prompts show as an answer is legal code of the shape it is for."""
        words = self.target.wording(self.profile)
        for mode, example in words.examples.items():
            facts = self.target.read(example)

            assert self.target.illegality(example) == 0, mode
            if mode in {"fields_only", "enum_values_only"}:
                assert example.startswith(f"{words.begin_delimiter}\n")
                assert example.endswith(f"\n{words.end_delimiter}")
                assert not facts.declarations
                # Delimiters are no part of a page.
                inner = "\n".join(example.splitlines()[1:-1])
                bare = self.target.unwrap_page(example, mode)
                assert self.target.leaves(bare) == self.target.leaves(inner)
            else:
                (entry,) = facts.declarations
                assert (entry.kind == "enum") == (mode == "enum_only"), mode
        assert words.fence.lower() in self.target.fence_tags

    def test_an_unknown_profile_is_refused(self) -> None:
        """Whoever asks for one learns which there are."""
        with pytest.raises(UsageError, match="no such profile"):
            self.target.wording("no such profile")


def _fields(types: Mapping[str, irs.TypeExpr]) -> tuple[FieldIR, ...]:
    return tuple(
        FieldIR(json_name=name, type=type_, required=not number % 2, nullable=not number % 3)
        for number, (name, type_) in enumerate(types.items())
    )


def _mistakes(type_: TypeIR) -> Iterator[tuple[str, dict[str, object], str]]:
    """Yield the code of a mistake, what is written in its place, and the member it is about."""
    for value in type_.enum_values:
        values = tuple(other for other in type_.enum_values if other != value)
        yield "ENUM_MEMBER", {"enum_values": values}, str(value)
    if type_.kind == "object":
        invented = FieldIR(json_name="invented", type=Scalar(kind="string"))
        yield "PHANTOM_FIELD", {"fields": (*type_.fields, invented)}, "invented"
    for number, field in enumerate(type_.fields):
        before, after = type_.fields[:number], type_.fields[number + 1 :]
        yield "MISSING_FIELD", {"fields": (*before, *after)}, field.json_name
        if field.type == Scalar(kind="any"):
            continue  # Any holds every value, and null whatever the spelling.
        is_plain = field.required and not field.nullable
        optional = field.model_copy(update={"required": not is_plain, "nullable": False})
        yield "NULLABILITY", {"fields": (*before, optional, *after)}, field.json_name
        other: irs.TypeExpr = Scalar(kind="boolean")
        if field.type == other:
            other = Scalar(kind="integer")
        elif isinstance(field.type, ArrayOf):
            other = MapOf(values=field.type.items)
        typed = field.model_copy(update={"type": other})
        yield "WRONG_TYPE", {"fields": (*before, typed, *after)}, field.json_name
