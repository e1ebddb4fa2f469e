"""The table ``[tool.pytest-regen]`` of a project, read by plugin and commands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_regen import modes
from pytest_regen.errors import UsageError
from pytest_regen.settings_files import TABLE, find_table

if TYPE_CHECKING:
    from pytest_regen.turns.values import Usage

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
            amount = getattr(self, name)
            if amount is not None:
                # By its text, because a file that says 0.1 means a tenth, and no float is one.
                object.__setattr__(self, name, Decimal(str(amount)))

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
    """``fail``, ``warn`` or ``ignore``: what happens to a request that is not as recorded."""
    unplayed: str | None = None
    """The same for recordings that a passing test did not ask for."""
    ignore: tuple[str, ...] = ()
    """Paths into request bodies that vary."""
    keep_headers: tuple[str, ...] = ()
    """Headers of requests that are kept as well, by name or pattern."""
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
    stale: modes.StalePolicy | None = None
    """Whether a type that is older than its description fails; ``auto``: in CI."""
    behaviour: modes.BehaviourPolicy | None = None
    """Whether generated code is run."""
    annotations: modes.AnnotationPolicy | None = None
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
    """The site of the documentation that codes link to, in the report and the job summary."""
    language: str | None = None
    """Target language of new stores, where ``--language`` names none."""
    stores: tuple[str, ...] = ()
    """Globs from the root; each store they match is collected, as by ini value ``regen_stores``."""
    sandbox: modes.SandboxLevel | None = None
    """The weakest level of the sandbox that is good enough for this project."""

    def ignored_codes(self, unit: str) -> frozenset[str]:
        """Return the codes that are not reported for ``unit`` (``STORE::Type``)."""
        codes = set(modes.BEHAVIOUR_CODES if self.behaviour == "off" else ())
        for pattern, ignored in self.ignore.items():
            # A name may hold brackets, because paths of an API do: it stands for itself as well.
            if pattern == unit or fnmatchcase(unit, pattern):
                codes.update(ignored)
        return frozenset(codes)


def read_settings(root: Path) -> Settings:
    """Return what ``[tool.pytest-regen]`` says in the root of a project; else the defaults.

    Raises:
        UsageError: a file is no TOML, or a key is unknown or of the wrong kind.
    """
    located = find_table(root)
    return settings_of(*located) if located else Settings()


def settings_of(path: Path, table: Mapping[str, Any]) -> Settings:
    """Return what a table says.

    Raises:
        UsageError: a key is unknown or of the wrong kind; ``path`` is what the message calls it.
    """
    check_table(f"{path}: [tool.{TABLE}]", table, _KEYS)
    values = {key: _frozen(value) for key, value in table.items() if key not in _SHIPPED_KINDS}
    values["shipped"] = {key: table[key] for key in _SHIPPED_KINDS if key in table}
    ignored = table.get("ignore", {})
    by_unit = ignored if isinstance(ignored, dict) else {"*": ignored}
    # STRUCTURAL is what the requirement calls SYNTAX.
    values["ignore"] = {
        unit: tuple("SYNTAX" if code == "STRUCTURAL" else code for code in codes)
        for unit, codes in by_unit.items()
    }
    prices = table.get("price", {})
    values["price"] = {model: _price(path, model, price) for model, price in prices.items()}
    cassettes = table.get("cassettes", {})
    check_table(f"{path}: [tool.{TABLE}.cassettes]", cassettes, _CASSETTE_KEYS)
    options = {key: _frozen(value) for key, value in cassettes.items()}
    values["cassettes"] = CassetteSettings(**options)
    return Settings(**values)


def _price(path: Path, model: str, price: Any) -> Price:
    if isinstance(price, dict) and {"input", "output"} <= price.keys() <= set(_PRICE_KEYS):
        try:
            return Price(**price)
        except InvalidOperation:
            pass
    expected = "input and output (cache_read, cache_write) in US dollars per million tokens"
    raise wrong_value(f"{path}: [tool.{TABLE}]", f'price."{model}"', price, expected)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# What each key may hold

Rule = tuple[Callable[[Any], bool], str]
"""Whether a value is right, and what is expected in the words of a message."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and all(value.partition(":")[::2])


def is_names(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def is_globs(value: Any) -> bool:
    """Return whether a value is a glob, or a list of some."""
    globs = [value] if isinstance(value, str) else value
    return is_names(globs) and bool(globs) and all(globs)


def _is_ignore(value: Any) -> bool:
    return all(map(is_names, value.values() if isinstance(value, dict) else [value]))


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://", "file:///"))


def _one_of(words: tuple[str, ...]) -> Rule:
    return lambda value: value in words, f"one of {', '.join(words)}"


_SHIPPED_KINDS = ("functions", "translations")
_SERVICES = ", ".join(modes.SERVICES)
_PROVIDERS = f'"{modes.TEMPLATE}", "openai:MODEL" (or {_SERVICES}), or "module:attribute"'
_KEYS: Mapping[str, Rule] = {
    "ignore": (_is_ignore, "a list of codes, or a table of such lists by STORE::Type"),
    # By type(), because TOML's true is an int to Python.
    "attempts": (lambda n: type(n) is int and n > 0, "a whole number of at least 1"),
    "model": (_is_text, "the name of a model"),
    "provider": (lambda name: name == modes.TEMPLATE or _is_reference(name), _PROVIDERS),
    "stale": _one_of(modes.STALE_POLICIES),
    "behaviour": _one_of(modes.BEHAVIOUR_POLICIES),
    "language": (_is_text, 'the name of a language, such as "python"'),
    "annotations": _one_of(modes.ANNOTATION_POLICIES),
    "price": (lambda prices: isinstance(prices, dict), "a table of prices by model"),
    "cassettes": (lambda table: isinstance(table, dict), "a table"),
    "kinds": (
        lambda names: isinstance(names, list) and all(map(_is_reference, names)),
        'a list of "module:Class"',
    ),
    "docs_url": (_is_address, 'an address such as "https://docs.example"'),
    "stores": (is_names, 'a list of globs ("generated/*")'),
    "sandbox": _one_of(modes.SANDBOX_LEVELS),
    # Each kind that ships checks its own.
    **dict.fromkeys(_SHIPPED_KINDS, (lambda _value: True, "")),
}
_CASSETTE_KEYS: Mapping[str, Rule] = {
    "drift": _one_of(modes.POLICIES),
    "unplayed": _one_of(modes.POLICIES),
    "ignore": (is_names, 'a list of paths ("$.metadata.user_id")'),
    "keep_headers": (is_names, 'a list of names ("x-feature-*")'),
    "drop_headers": (is_names, 'a list of names ("date")'),
    "passthrough_hosts": (is_names, 'a list of hosts ("telemetry.example.com")'),
    "baseline": (_is_text, "the name of a file"),
}


def check_table(title: str, table: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Refuse keys that are unknown, and values of the wrong kind.

    Args:
        title: how messages name the table.
        table: what it says.
        rules: what each key may hold.

    Raises:
        UsageError: the first of them, with what was meant or may stand there.
    """
    for key, value in table.items():
        if key not in rules:
            near = get_close_matches(key, rules, n=1)
            raise UsageError(
                f"{title} has the unknown key {key!r}",
                why=f"known are {', '.join(rules)}",
                hint=f"write {near[0]}" if near else "remove the key",
            )
        is_right, expected = rules[key]
        if not is_right(value):
            raise wrong_value(title, key, value, expected)


def wrong_value(title: str, key: str, value: object, expected: str) -> UsageError:
    """Return the error that a key of a table holds something else than ``expected``."""
    return UsageError(
        f"{title} {key} = {value!r:.200} is wrong",
        why=f"expected {expected}",
        hint="correct the value or remove the key",
    )
