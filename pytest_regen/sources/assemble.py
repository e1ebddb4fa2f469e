"""Many types as one source file: a header, then one block per type between its boundaries."""

from collections.abc import Sequence

from pytest_regen.errors import SourceError, UsageError
from pytest_regen.languages import language_named
from pytest_regen.languages.base import Language, Stitched
from pytest_regen.sources.boundaries import DEFAULT_TAG, is_boundary_free, wrap_type_block

__all__ = ["assemble", "assemble_cs", "stitch", "stitch_and_assemble"]


def assemble(
    types: Sequence[tuple[str, str]],
    language: str = "csharp",
    *,
    namespace: str | None = None,
    profile: str = "default",
    header: str | None = None,
    tag: str = DEFAULT_TAG,
) -> str:
    """Return one source file of all ``types``, in their order.

    Exact: ``extract_type_block`` returns each text byte for byte, whatever it holds.

    Args:
        types: pairs of the name a type is declared as, and its code.
        language: name of the target language.
        namespace: for the header; ``None`` or "" for none.
        profile: for the header.
        header: the text before the first block, instead of the language's own; "" for none.
        tag: the word in the boundaries.

    Returns:
        The file's text, ending in one line end.

    Raises:
        UsageError: two types have one name, or a name, the namespace or the profile is no good.
        SourceError: the header holds a boundary line.
    """
    speaks = language_named(language)
    if header is None:
        header = speaks.header(namespace=namespace or "", profile=profile)
    _check(types, header)
    parts = [header.rstrip("\n")] if header.strip("\n") else []
    parts += [wrap_type_block(name, code, tag=tag, comment=speaks.comment) for name, code in types]
    return "\n\n".join(parts) + "\n"


assemble_cs = assemble
"""``assemble`` under the name it has where C# is the only language."""


def stitch(
    outputs: Sequence[str], *, name: str, is_enum: bool, language: str | Language = "csharp"
) -> Stitched:
    """Return the pages of one type as one declaration.

    Args:
        outputs: code of the pages, page 1 first.
        name: the name the type is declared as.
        is_enum: whether pages hold enum values, not members.
        language: a target language or its name.
    """
    speaks = language_named(language) if isinstance(language, str) else language
    return speaks.stitch(outputs, name=name, is_enum=is_enum)


def stitch_and_assemble(
    all_type_pages: Sequence[tuple[str, bool, Sequence[str]]],
    language: str = "csharp",
    *,
    namespace: str | None = None,
    profile: str = "default",
    header: str | None = None,
    tag: str = DEFAULT_TAG,
) -> str:
    """Return one source file of all types, each given by its pages.

    Args:
        all_type_pages: for each type its name, whether it is the root, and its pages' code. What
            kind of type it is, page 1 tells.
        language: name of the target language.
        namespace: see ``assemble``.
        profile: see ``assemble``.
        header: see ``assemble``.
        tag: see ``assemble``.

    Raises:
        UsageError: see ``assemble``.
        SourceError: see ``assemble``.
    """
    speaks = language_named(language)
    # Whether the members are enum values, page 1 tells by itself.
    types = [
        (name, speaks.stitch(outputs, name=name, is_enum=False).text)
        for name, _, outputs in all_type_pages
    ]
    return assemble(types, language, namespace=namespace, profile=profile, header=header, tag=tag)


def _check(types: Sequence[tuple[str, str]], header: str) -> None:
    seen: set[str] = set()
    for name, _ in types:
        if name in seen:
            raise UsageError(
                f"two types are called {name!r}",
                why="type names are unique in a source; blocks are found by them",
                hint="rename one of the types",
            )
        seen.add(name)
    if not is_boundary_free(header):
        raise SourceError(
            "the header holds a line that reads as a boundary",
            why="a boundary outside a block would be taken for the start or end of one",
            hint="remove that line from the header",
        )
