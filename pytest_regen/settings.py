"""The table ``[tool.pytest-regen]`` of a project's pyproject.toml, read by plugin and commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from pytest_regen.turns.values import Usage

__all__ = [
    "CassetteSettings",
    "Price",
    "Settings",
    "find_settings",
    "load_toml",
    "parse_toml",
    "read_settings",
]

_TABLE = "pytest-regen"
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


def find_settings(start: Path) -> Settings:
    """Return the settings of the nearest pyproject.toml at or above ``start``."""
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file():
            return read_settings(folder)
    return Settings()


def read_settings(root: Path) -> Settings:
    """Return the settings in ``root/pyproject.toml``; the defaults where there are none.

    Raises:
        UsageError: the file is no TOML, or a key is unknown or of the wrong kind.
    """
    path = root / "pyproject.toml"
    if not path.is_file():
        return Settings()
    tools = load_toml(path).get("tool", {})
    if not isinstance(tools, dict):
        raise UsageError(
            f"{path}: tool is {tools!r:.80}, not a table",
            hint=f"write [tool.{_TABLE}] on a line of its own",
        )
    table = tools.get(_TABLE, {})
    _refuse_unknown(path, table, _KEYS)
    return Settings(
        _ignore(path, table.get("ignore", {})),
        _attempts(path, table.get("attempts")),
        _model(path, table.get("model")),
        _provider(path, table.get("provider")),
        _stale(path, table.get("stale")),
        _behaviour(path, table.get("behaviour")),
        _annotations(path, table.get("annotations")),
        _prices(path, table.get("price", {})),
        _cassettes(path, table.get("cassettes", {})),
        _kinds(path, table.get("kinds", [])),
        {key: table[key] for key in _SHIPPED_KINDS if key in table},
        docs_url=_docs_url(path, table.get("docs_url")),
        language=_language(path, table.get("language")),
        sandbox=_sandbox(path, table.get("sandbox")),
    )


def load_toml(path: Path) -> dict[str, Any]:
    """Return what a file holds.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    try:
        return parse_toml(path.read_bytes().decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not readable as TOML", why=str(error), hint="correct the file"
        ) from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read", why=error.strerror or str(error), hint="let it be read"
        ) from error


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return what a text says.

    Raises:
        UsageError: it is no TOML; ``name`` is what the message calls it.
    """
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        mark = "it begins with a byte order mark, which pytest and others refuse"
        raise UsageError(
            f"{name} is not readable as TOML",
            why=mark if text.startswith("\ufeff") else str(error),
            hint="save it as UTF-8 without a mark"
            if text.startswith("\ufeff")
            else "correct the file",
        ) from None


def _wrong(path: Path, key: str, value: object, expected: str) -> UsageError:
    return UsageError(
        f"{path}: [tool.{_TABLE}] {key} = {value!r} is wrong",
        why=f"expected {expected}",
        hint="correct the value or remove the key",
    )


def _refuse_unknown(path: Path, table: object, known: tuple[str, ...]) -> None:
    if not isinstance(table, dict):
        raise UsageError(
            f"{path}: tool.{_TABLE} is {table!r}, not a table",
            hint=f"write [tool.{_TABLE}] on a line of its own",
        )
    for key in table:
        if key not in known:
            raise UsageError(
                f"{path}: [tool.{_TABLE}] has the unknown key {key!r}",
                hint=f"known are {', '.join(known)}",
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


def _model(path: Path, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise _wrong(path, "model", value, "the name of a model")
    return value


def _language(path: Path, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise _wrong(path, "language", value, 'the name of a language, such as "python"')
    return value


def _provider(path: Path, value: object) -> str | None:
    if value is None or value == TEMPLATE:
        return value and TEMPLATE
    if not isinstance(value, str) or not all(value.partition(":")[::2]):
        raise _wrong(path, "provider", value, _PROVIDERS)
    return value


def _stale(path: Path, value: object) -> StalePolicy | None:
    chosen = next((word for word in STALE_POLICIES if word == value), None)
    if value is not None and chosen is None:
        raise _wrong(path, "stale", value, f"one of {', '.join(STALE_POLICIES)}")
    return chosen


def _behaviour(path: Path, value: object) -> BehaviourPolicy | None:
    chosen = next((word for word in BEHAVIOUR_POLICIES if word == value), None)
    if value is not None and chosen is None:
        raise _wrong(path, "behaviour", value, f"one of {', '.join(BEHAVIOUR_POLICIES)}")
    return chosen


def _annotations(path: Path, value: object) -> AnnotationPolicy | None:
    chosen = next((word for word in ANNOTATION_POLICIES if word == value), None)
    if value is not None and chosen is None:
        raise _wrong(path, "annotations", value, f"one of {', '.join(ANNOTATION_POLICIES)}")
    return chosen


def _sandbox(path: Path, value: object) -> SandboxLevel | None:
    chosen = next((word for word in SANDBOX_LEVELS if word == value), None)
    if value is not None and chosen is None:
        raise _wrong(path, "sandbox", value, f"one of {', '.join(SANDBOX_LEVELS)}")
    return chosen


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
    expected = (
        "a table of drift, unplayed (fail, warn or ignore), ignore (a list of paths), "
        "keep_headers, drop_headers, passthrough_hosts (lists of names), baseline (a file)"
    )
    known = {field.name for field in fields(CassetteSettings)}
    if not isinstance(value, dict) or not set(value) <= known:
        raise _wrong(path, "cassettes", value, expected)
    for key, allowed in _CHOICES.items():
        if key in value and value[key] not in allowed:
            raise _wrong(path, f"cassettes.{key}", value[key], f"one of {', '.join(allowed)}")
    lists = {key: _name_list(path, value, key, what) for key, what in _CASSETTE_LISTS.items()}
    baseline = value.get("baseline")
    if baseline is not None and (not isinstance(baseline, str) or not baseline):
        raise _wrong(path, "cassettes.baseline", baseline, "the name of a file")
    return CassetteSettings(value.get("drift"), value.get("unplayed"), baseline=baseline, **lists)


def _name_list(path: Path, table: Mapping[str, object], key: str, expected: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _wrong(path, f"cassettes.{key}", value, expected)
    return tuple(value)


def _price(path: Path, key: str, entry: object) -> Price:
    expected = "input and output (cache_read, cache_write) in US dollars per million tokens"
    if not isinstance(entry, dict) or not {"input", "output"} <= set(entry) <= set(_PRICE_KEYS):
        raise _wrong(path, key, entry, expected)
    try:
        return Price(**entry)
    except InvalidOperation:
        raise _wrong(path, key, entry, expected) from None
