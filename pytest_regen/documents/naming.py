"""Names for types: from the place where a schema stands, so that nothing unrelated changes them."""

import hashlib
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from pytest_regen.documents.places import Pointer

_MAX_LENGTH: Final = 80
"""Characters of a schema name; a longer one is cut and told apart by a hash."""
MAX_TITLE_WORDS: Final = 3
"""A title of more words is a sentence, and a poor name."""
_CONTAINERS: Final = frozenset({"schemas", "definitions", "$defs", "responses"})
_NAMELESS: Final = frozenset(
    {"allOf", "oneOf", "anyOf", "schema", "components"}
    | {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
)
_INSIDE: Final = frozenset({"items", "prefixItems", "additionalProperties", "additionalItems"})
_STATUS: Final = re.compile(r"\d{3}|[1-5]XX|default", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]+")
_USES: Final = re.compile(r"[^aeo]uses$")
_LAST_HUMP: Final = re.compile(r"(.*?)([A-Z]?[^A-Z\W_]+|[A-Z]+s?)$")

_SAME: Final = frozenset(
    {"series", "species", "news", "status", "means", "info", "canvas", "atlas", "alias", "bias"}
    | {"lens", "chaos", "cosmos", "sms", "dns", "https", "aws", "gps", "ios", "os", "pos", "gas"}
    | {"always", "has", "was", "analytics", "physics", "mathematics", "logistics", "headquarters"}
)
_IRREGULAR: Final = {
    "people": "person", "children": "child", "men": "man", "women": "woman", "feet": "foot",
    "teeth": "tooth", "mice": "mouse", "geese": "goose", "indices": "index", "indexes": "index",
    "vertices": "vertex", "matrices": "matrix", "criteria": "criterion", "axes": "axis",
    "analyses": "analysis", "crises": "crisis", "theses": "thesis", "diagnoses": "diagnosis",
    "leaves": "leaf", "lives": "life", "knives": "knife", "wolves": "wolf", "shelves": "shelf",
    "halves": "half", "quizzes": "quiz", "gases": "gas", "buses": "bus", "aliases": "alias",
    "lenses": "lens", "canvases": "canvas", "biases": "bias", "atlases": "atlas", "menus": "menu",
    "gurus": "guru", "movies": "movie", "cookies": "cookie", "calories": "calorie",
    "zombies": "zombie", "caches": "cache", "niches": "niche", "headaches": "headache",
    "shoes": "shoe", "toes": "toe", "uses": "use", "fuses": "fuse", "excuses": "excuse",
    "abuses": "abuse", "reuses": "reuse", "taxis": "taxi", "skis": "ski", "ids": "id",
}  # fmt: skip


class NamingRules(Protocol):
    """What naming needs to know of a target language; every language provides it."""

    @property
    def name(self) -> str:
        """The name of the language, as ``ir.json`` records it."""

    @property
    def reserved_type_names(self) -> frozenset[str]:
        """Names that a generated type must not take."""

    @property
    def has_unions(self) -> bool:
        """Whether a member can be one of several types."""

    def type_name(self, schema_name: str, *, is_root: bool) -> str:
        """Return a legal name for the type of a schema called ``schema_name``."""

    def has_enum_member(self, value: str) -> bool:
        """Return whether a member of an enum can stand for ``value`` on the wire."""


def words(text: str) -> str:
    """Return ``text`` as one word, each of its parts starting with a capital."""
    return "".join(part[:1].upper() + part[1:] for part in _WORD.findall(text))


def singular(name: str) -> str:
    """Return ``name`` with its last word in the singular: ``orderLines`` is ``orderLine``."""
    match = _LAST_HUMP.match(name)
    if match is None:
        return name
    before, last = match.groups()
    lower = last.lower()
    if last.isupper() or lower in _SAME:
        return name
    single = _IRREGULAR.get(lower, lower)
    if single == lower and lower.endswith("s") and not lower.endswith(("ss", "us", "is")):
        single = lower[:-1] or lower
        if lower.endswith("ies") and len(lower) > len("ties"):
            single = lower[:-3] + "y"
        elif lower.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")) or _USES.search(lower):
            single = lower[:-2]
    return before + (last[:-1] if lower[:-1] == single else last[0] + single[1:])


def home_name(place: Pointer) -> str:
    """Return the name that a schema has from where it stands: its owner's and its property's.

    ``#/components/schemas/Order/properties/lines/items`` is ``OrderLine``; a response's own schema
    is named after the last word of the path.
    """
    name = words(place.file.rpartition("/")[2].partition(".")[0])
    path = iter(place.path)
    for part in path:
        if part == "paths":
            name = _path_name(next(path, ""))
            # The schema of an answer has no better name than that of the path.
            any(inner == "schema" for inner in path)
        elif part in _CONTAINERS:
            inner = next(path, name)
            name = name if _STATUS.fullmatch(inner) else inner
        elif part == "patternProperties":
            next(path, None)
            name = singular(name)
        elif part == "properties":
            name = words(name) + words(next(path, ""))
        elif part in _INSIDE:
            name = singular(name)
        elif part == "content":
            next(path, None)
        elif part not in _NAMELESS and not part.isdigit():
            name = part
    return name


def _path_name(path: str) -> str:
    """Return a name from the last part of a path that is no parameter, in the singular."""
    for segment in reversed(path.split("/")):
        fixed = re.sub(r"\{[^}]*\}", "", segment)
        fixed = re.sub(r"\.(json|xml)$", "", fixed)
        name = words(fixed)
        if name:
            return singular(name)
    return "Response"


def _shorten(name: str) -> str:
    if len(name) <= _MAX_LENGTH:
        return name
    return name[: _MAX_LENGTH - 9].rstrip("_") + "_" + _digest(name)[:8]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_component(place: Pointer) -> bool:
    """Return whether the schema has a name of its own in the document."""
    match place.path:
        case ("components", "schemas" | "responses", _) | ("definitions", _) | (*_, "$defs", _):
            return True
        case (_,) | ():
            return bool(place.file)
        case (*_, container, _):
            return bool(place.file) and container in _CONTAINERS
    return False


def _candidates(place: Pointer, title: str | None, option: str, *, is_root: bool) -> Iterator[str]:
    """Yield names for the schema at ``place``, the best first; they never end."""
    home = home_name(place)
    # What stands in a union has the union's place, and nothing but its tag or title tells it apart.
    if option and not is_component(place):
        home += words(option)
    is_nameless = is_root and not is_component(place)
    if is_nameless and title and len(_WORD.findall(title)) <= MAX_TITLE_WORDS:
        yield _shorten(words(title))
    yield _shorten(home)
    if is_nameless:
        yield _shorten(home + "Response")
    # Two files may have a schema of one name: the file's tells them apart.
    if place.file:
        yield _shorten(words(place.file.rpartition("/")[2].partition(".")[0]) + words(home))
    yield _shorten(home + "Type")
    for length in range(6, 65):
        yield f"{_shorten(home)}_{_digest(str(place))[:length]}"


def give_names(
    places: Iterable[Pointer],
    roots: Container[Pointer],
    title: str | None,
    language: NamingRules,
    options: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return for each place, as text, the name its type is declared by.

    No two are equal, not even but for case. Schemas with a name in the document choose first;
    among equals the order of their places decides, so that a name depends on its rivals only.

    Args:
        places: of all types of the store.
        roots: those that are the response itself.
        title: the root's title; used where the root has no name of its own.
        language: makes names legal in the target language.
        options: by place, what tells a schema from the others of its union.
    """

    def rank(place: Pointer) -> tuple[int, str]:
        if is_component(place):
            return (0 if place in roots else 1, str(place))
        return (2 if place in roots else 3, str(place))

    taken: set[str] = set()
    names: dict[str, str] = {}
    for place in sorted(places, key=rank):
        is_root = place in roots
        own_title = title if is_root else None
        option = options.get(str(place), "")
        for candidate in _candidates(place, own_title, option, is_root=is_root):
            name = language.type_name(candidate, is_root=is_root)
            folded = unicodedata.normalize("NFKC", name).casefold()
            if candidate and name not in language.reserved_type_names and folded not in taken:
                taken.add(folded)
                names[str(place)] = name
                break
        else:
            raise AssertionError(f"the language gives no free name for {place}")
    return names
