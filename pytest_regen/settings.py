"""The table ``[tool.pytest-regen]`` of a project, read by plugin and commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_regen.errors import UsageError
from pytest_regen.modes import (
    ANNOTATION_POLICIES,
    BEHAVIOUR_CODES,
    BEHAVIOUR_POLICIES,
    POLICIES,
    SANDBOX_LEVELS,
    SERVICES,
    STALE_POLICIES,
    TEMPLATE,
    AnnotationPolicy,
    BehaviourPolicy,
    SandboxLevel,
    StalePolicy,
)
from pytest_regen.settings_files import TABLE, find_table

if TYPE_CHECKING:
    from pytest_regen.turns.values import Usage

T = TypeVar("T", bound=str)

_ALIASES = {"STRUCTURAL": "SYNTAX"}
_SHIPPED_KINDS = ("functions", "translations")
_KEYS = (
    "ignore",
    "attempts",
    "model",
    "provider",
    "stale",
    "behaviour",
    "language",
    "annotations",
    "price",
    "cassettes",
    "kinds",
    "docs_url",
    "stores",
    "sandbox",
    *_SHIPPED_KINDS,
)
_CHOICES = {"drift": POLICIES, "unplayed": POLICIES}
_CASSETTE_LISTS = {
    "ignore": 'a list of paths ("$.metadata.user_id")',
    "keep_headers": 'a list of names ("x-feature-*")',
    "drop_headers": 'a list of names ("date")',
    "passthrough_hosts": 'a list of hosts ("telemetry.example.com")',
}
_PROVIDERS = (
    f'"{TEMPLATE}", "{SERVICES[1]}:MODEL" (or {", ".join(SERVICES)}), or "module:attribute"'
)
_PRICE_KEYS = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars per million tokens; plain numbers become decimals."""

    input: Decimal
    """Of input that was not cached."""
    output: Decimal
    """Of output."""
    cache_read: Decimal | None = None
    """Of input read from the prompt cache; by default as ``input``."""
    cache_write: Decimal | None = None
    """Of input written to the prompt cache; by default as ``input``."""

    def __post_init__(self) -> None:
        for name in _PRICE_KEYS:
            given = getattr(self, name)
            if given is not None:
                # As it is written: 0.1 is a tenth.
                object.__setattr__(self, name, Decimal(str(given)))

    def cost(self, usage: "Usage") -> Decimal:
        """Return what a turn costs in US dollars; cached input costs as input by default."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        dollars = (
            (usage.input_tokens or 0) * self.input
            + (usage.output_tokens or 0) * self.output
            + (usage.cache_read_tokens or 0) * read
            + (usage.cache_write_tokens or 0) * write
        )
        return dollars / 1_000_000


@dataclass(frozen=True, slots=True)
class CassetteSettings:
    """What holds for every cassette of a project."""

    drift: str | None = None
    """``fail``, ``warn`` or ``ignore``: what becomes of a request that is not what was recorded."""
    unplayed: str | None = None
    """The same for recordings that a passing test did not ask for."""
    ignore: tuple[str, ...] = ()
    """Paths into request bodies that vary."""
    keep_headers: tuple[str, ...] = ()
    """Headers of requests that are kept, too, by name or pattern."""
    drop_headers: tuple[str, ...] = ()
    """Headers of requests and answers that are not kept."""
    passthrough_hosts: tuple[str, ...] = ()
    """Hosts whose requests are neither recorded nor replayed nor missed."""
    baseline: str | None = None
    """File, from the root, with findings of ``cassettes check`` that were accepted."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project fixed for all runs; options and ini values override it."""

    ignore: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Codes that are not reported, by a glob over ``STORE::Type``; ``*`` means everywhere."""
    attempts: int | None = None
    """In pytest, calls of a test, the first included; in commands, replies per page."""
    model: str | None = None
    """Model that is asked, where no option, mark or ini value names one."""
    provider: str | None = None
    """Who answers: ``openai:MODEL`` and the like, ``module:attribute``, or ``template`` for types
    of an API without a model."""
    stale: StalePolicy | None = None
    """Whether a type that is older than its description fails; ``auto``: in CI."""
    behaviour: BehaviourPolicy | None = None
    """Whether generated code is run."""
    annotations: AnnotationPolicy | None = None
    """Whether issues are printed as annotations of GitHub; ``auto``: where GitHub Actions runs."""
    price: Mapping[str, Price] = field(default_factory=dict)
    """By model name, for models that the price list does not know."""
    cassettes: CassetteSettings = field(default_factory=CassetteSettings)
    """What holds for every cassette."""
    kinds: tuple[str, ...] = ()
    """Kinds of units, as ``module:Class``."""
    shipped: Mapping[str, object] = field(default_factory=dict)
    """Settings of kinds that ship, by key, as they are written; each kind checks its own."""
    docs_url: str | None = None
    """The site of the documentation that codes link to, in a terminal and in the report."""
    language: str | None = None
    """Target language of new stores, where ``--language`` names none."""
    stores: tuple[str, ...] = ()
    """Globs from the root; each store they match is collected, as by ini value ``regen_stores``."""
    sandbox: SandboxLevel | None = None
    """The weakest level of the sandbox that is good enough for this project."""

    def ignored_codes(self, unit: str) -> frozenset[str]:
        """Return the codes that are not reported for ``unit`` (``STORE::Type``)."""
        unasked = BEHAVIOUR_CODES if self.behaviour == "off" else frozenset()
        return unasked | frozenset(
            code
            for pattern, codes in self.ignore.items()
            if pattern == unit or fnmatchcase(unit, pattern)
            for code in codes
        )


def read_settings(root: Path) -> Settings:
    """Return what ``[tool.pytest-regen]`` says in the root of a project; else the defaults.

    Raises:
        UsageError: a file is no TOML, or a key is unknown or of the wrong kind.
    """
    found = find_table(root)
    return settings_of(*found) if found else Settings()


def settings_of(path: Path, table: Mapping[str, Any]) -> Settings:
    """Return what a table says.

    Raises:
        UsageError: a key is unknown or of the wrong kind; ``path`` is what the message calls it.
    """
    _refuse_unknown(path, "", table, _KEYS)
    return Settings(
        _ignore(path, table.get("ignore", {})),
        _attempts(path, table.get("attempts")),
        _text(path, table, "model", "the name of a model"),
        _provider(path, table.get("provider")),
        _word(path, table, "stale", STALE_POLICIES),
        _word(path, table, "behaviour", BEHAVIOUR_POLICIES),
        _word(path, table, "annotations", ANNOTATION_POLICIES),
        _prices(path, table.get("price", {})),
        _cassettes(path, table.get("cassettes", {})),
        _kinds(path, table.get("kinds", [])),
        {key: table[key] for key in _SHIPPED_KINDS if key in table},
        docs_url=_docs_url(path, table.get("docs_url")),
        language=_text(path, table, "language", 'the name of a language, such as "python"'),
        stores=_names(path, table, "stores", 'a list of globs ("generated/*")'),
        sandbox=_word(path, table, "sandbox", SANDBOX_LEVELS),
    )


def _wrong(path: Path, key: str, value: object, expected: str) -> UsageError:
    return UsageError(
        f"{path}: [tool.{TABLE}] {key} = {value!r} is wrong",
        why=f"expected {expected}",
        hint="correct the value or remove the key",
    )


def _refuse_unknown(path: Path, name: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    unknown = next((key for key in table if key not in keys), None)
    if unknown is not None:
        near = get_close_matches(unknown, keys, n=1)
        raise UsageError(
            f"{path}: [tool.{TABLE}{name}] has the unknown key {unknown!r}",
            why=f"known are {', '.join(keys)}",
            hint=f"write {near[0]}" if near else "remove the key",
        )


def _ignore(path: Path, value: object) -> dict[str, tuple[str, ...]]:
    table = {"*": value} if isinstance(value, list) else value
    expected = "a list of codes, or a table of such lists by STORE::Type"
    if not isinstance(table, dict):
        raise _wrong(path, "ignore", value, expected)
    for codes in table.values():
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            raise _wrong(path, "ignore", value, expected)
    return {
        unit: tuple(_ALIASES.get(code, code) for code in codes) for unit, codes in table.items()
    }


def _attempts(path: Path, value: object) -> int | None:
    if value is None:
        return None
    # TOML's true is Python's 1.
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(path, "attempts", value, "a whole number of at least 1")
    return value


def _text(path: Path, table: Mapping[str, Any], key: str, expected: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise _wrong(path, key, value, expected)
    return value


def _word(path: Path, table: Mapping[str, Any], key: str, words: tuple[T, ...]) -> T | None:
    value = table.get(key)
    chosen = next((word for word in words if word == value), None)
    if value is not None and chosen is None:
        raise _wrong(path, key, value, f"one of {', '.join(words)}")
    return chosen


def _names(
    path: Path, table: Mapping[str, Any], key: str, expected: str, *, of: str = ""
) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _wrong(path, f"{of}{key}", value, expected)
    return tuple(value)


def _provider(path: Path, value: object) -> str | None:
    if value is None or value == TEMPLATE:
        return value and TEMPLATE
    if not isinstance(value, str) or not all(value.partition(":")[::2]):
        raise _wrong(path, "provider", value, _PROVIDERS)
    return value


def _kinds(path: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        isinstance(name, str) and all(name.partition(":")[::2]) for name in value
    ):
        raise _wrong(path, "kinds", value, 'a list of "module:Class"')
    return tuple(value)


def _docs_url(path: Path, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith(("https://", "http://", "file:///")):
        raise _wrong(path, "docs_url", value, 'an address such as "https://docs.example"')
    return value


def _prices(path: Path, value: object) -> dict[str, Price]:
    if not isinstance(value, dict):
        raise _wrong(path, "price", value, "a table of prices by model")
    return {str(model): _price(path, f'price."{model}"', entry) for model, entry in value.items()}


def _cassettes(path: Path, value: object) -> CassetteSettings:
    if not isinstance(value, dict):
        raise _wrong(path, "cassettes", value, "a table")
    _refuse_unknown(path, ".cassettes", value, tuple(f.name for f in fields(CassetteSettings)))
    for key, allowed in _CHOICES.items():
        if key in value and value[key] not in allowed:
            raise _wrong(path, f"cassettes.{key}", value[key], f"one of {', '.join(allowed)}")
    lists = {
        key: _names(path, value, key, expected, of="cassettes.")
        for key, expected in _CASSETTE_LISTS.items()
    }
    baseline = value.get("baseline")
    if baseline is not None and (not isinstance(baseline, str) or not baseline):
        raise _wrong(path, "cassettes.baseline", baseline, "the name of a file")
    return CassetteSettings(value.get("drift"), value.get("unplayed"), baseline=baseline, **lists)


def _price(path: Path, key: str, entry: object) -> Price:
    expected = "input and output (cache_read, cache_write) in US dollars per million tokens"
    if not isinstance(entry, dict) or not {"input", "output"} <= set(entry) <= set(_PRICE_KEYS):
        raise _wrong(path, key, entry, expected)
    try:
        return Price(**entry)
    except InvalidOperation:
        raise _wrong(path, key, entry, expected) from None
