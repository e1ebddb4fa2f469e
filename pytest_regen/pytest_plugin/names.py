"""Names that a run shows: files of cassettes, and the commands that messages suggest."""

import re
import shlex
from collections.abc import Callable, Sequence
from hashlib import md5
from pathlib import Path

import pytest

from pytest_regen.canonical import text_hash
from pytest_regen.credentials.search import scrub_text
from pytest_regen.files import safe_file_name
from pytest_regen.modes import TEMPLATE, split_provider
from pytest_regen.pytest_plugin.choices import cassette_mark, choices_of
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.selection import id_from_here

_FORBIDDEN = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)", re.IGNORECASE)
"""What Windows takes for a device, whatever comes after the dot."""
_SUFFIXES = (".yaml", ".yml", ".json")
_LONGEST_NAME = 200
"""Bytes; file systems stop at 255."""
_LONGEST_FILE = 255


def cassette_of_test(item: pytest.Item, named: str | None = None) -> Path:
    """Return the file of a test's own cassette: ``<folder>/cassettes/<module>/<test>.yaml``.

    Args:
        item: the test.
        named: the name given elsewhere than by its marker, which wins.

    Raises:
        pytest.UsageError: the name leads out of the folder.
    """
    folder = item.path.parent / "cassettes"
    named = cassette_mark(item).name or named
    if named is not None:
        return _explicit_cassette(item, folder / item.path.stem, named)
    name = plain_cassette_name(item, lambda: folder / item.path.stem)
    if len(name.encode()) > _LONGEST_NAME:
        name = safe_file_name(name)
    return folder / item.path.stem / f"{name}.yaml"


def mode_to_record(path: Path) -> str:
    """Return the mode that records what a cassette lacks: ``once`` adds nothing to a file."""
    return "new_episodes" if path.exists() else "once"


def plain_cassette_name(item: pytest.Item, folder: Callable[[], Path]) -> str:
    """Return the name pytest-recording gives a test's cassette, so that a suite may switch.

    Of a parameter that is a credential another one stands in its place, unless that plugin has
    recorded the test.

    Args:
        item: the test.
        folder: says where its cassette is, if that matters.
    """
    cls = getattr(item, "cls", None)
    name = f"{cls.__name__}.{item.name}" if cls is not None else item.name
    clean, theirs = scrub_text(name), name.translate(_FORBIDDEN)
    if clean == name or _is_recorded(folder(), theirs):
        return theirs
    # Two of them are two cassettes.
    return f"{clean}-{text_hash(name).removeprefix('sha256:')[:8]}".translate(_FORBIDDEN)


def _is_recorded(folder: Path, name: str) -> bool:
    """Whether there is a cassette of this name, of whatever suffix the serializer chose."""
    try:
        return any(file.name.startswith(f"{name}.") for file in folder.iterdir())
    except OSError:
        return False


def vcr_file_name(name: str, suffix: str) -> str:
    """Return the name of a cassette of a test marked ``vcr``, if it is too long a shorter one.

    The one that pytest-recording would give it, unless that is too long as well.

    Args:
        name: the name, or a path, with or without suffix.
        suffix: what that plugin counts as the suffix: the serializer, or ``.yaml``.
    """
    if len(name) + len(suffix) > _LONGEST_FILE:
        digest = md5(name.encode(), usedforsecurity=False).hexdigest()
        name = f"{name[: _LONGEST_FILE - len(suffix) - len(digest) - 3]}...{digest}"
    folder, _, file = name.rpartition("/")
    whole = len(file.encode()) + len(suffix) + (not suffix.startswith("."))
    if whole > _LONGEST_FILE and not file.endswith(suffix):
        return f"{folder}/{safe_file_name(file)}" if folder else safe_file_name(file)
    return name


def _explicit_cassette(item: pytest.Item, folder: Path, name: str) -> Path:
    if not name.rpartition("/")[2].strip():
        raise usage_error(
            f"{item.nodeid}: cassette(name={name!r}) names no file",
            hint="name the file, with or without .yaml, or leave the name out",
        )
    file = Path(name if name.removesuffix(".gz").endswith(_SUFFIXES) else f"{name}.yaml")
    if file.is_absolute() or ".." in file.parts or "\0" in name:
        raise usage_error(
            f"{item.nodeid}: cassette(name={name!r}) leads out of {folder}",
            hint="name a file below that folder",
        )
    # Folders in a name are folders; each part becomes a name that every file system takes.
    stem = file.name.removesuffix(".gz").rpartition(".")[0]
    parts = [*file.parts[:-1], stem]
    safe = [part if _fits(part) else safe_file_name(part.replace(".", "_")) for part in parts]
    return folder.joinpath(*safe[:-1], safe[-1] + file.name[len(stem) :])


def _fits(name: str) -> bool:
    return (
        len(name.encode()) <= _LONGEST_NAME
        and name == name.translate(_FORBIDDEN)
        and name.isprintable()
        and _RESERVED.match(name) is None
    )


def own_cassette(item: pytest.Item) -> Path | None:
    """Return the cassette of a test that has one of its own, as far as its markers name it."""
    fixtures = getattr(item, "fixturenames", None)
    if fixtures is None:
        return None
    # What a test with the marker `regen` regenerates is recorded there, too.
    marked = any(item.get_closest_marker(name) is not None for name in ("cassette", "regen"))
    is_there = marked or "cassette" in fixtures
    return cassette_of_test(item) if is_there else None


def vcr_cassettes(item: pytest.Item) -> tuple[Path, ...]:
    """Return the files that a test marked ``vcr`` may use; none for another one."""
    if not hasattr(item, "fixturenames") or item.get_closest_marker("vcr") is None:
        return ()
    folder = item.path.parent / "cassettes" / item.path.stem
    default = item.get_closest_marker("default_cassette")
    named = (
        str(default.args[0])
        if default and default.args
        else plain_cassette_name(item, lambda: folder)
    )
    named = vcr_file_name(named, ".yaml")
    names = [named, *(str(arg) for each in item.iter_markers("vcr") for arg in each.args)]
    # With and without a suffix: the suite's own configuration chooses it.
    return tuple(folder / f"{name}{end}" for name in names for end in ("", ".yaml", ".json"))


def node_command(config: pytest.Config, *nodeids: str, options: Sequence[str] = ()) -> str:
    """Return the command that runs just these nodes."""
    named = (id_from_here(nodeid, config) for nodeid in nodeids)
    return " ".join(map(shlex.quote, ["pytest", *named, *options]))


def keeps_template(config: pytest.Config) -> bool:
    """Return whether the template writes again what it wrote: nothing says who is to answer."""
    choices = choices_of(config)
    named = choices.provider_option, choices.provider_default, config.option.regen_model
    return not any(named) and config.hook.pytest_regen_provider(config=config) is None


def heal_command(
    config: pytest.Config, nodeid: str, cassette: Path, *, by_template: bool = False
) -> str:
    """Return the command that heals one node.

    What was never recorded cannot be replayed: the command records it. The template, where it is
    chosen or wrote the type before, records nothing.

    Args:
        config: pytest's configuration.
        nodeid: the item.
        cassette: where its turns are recorded.
        by_template: whether the template writes what is to be healed.
    """
    if by_template:
        return _heal_again(config, nodeid, "none", provider=choices_of(config).provider_option)
    mode = "none" if cassette.exists() else "once"
    return _heal_again(config, nodeid, mode, provider=_asked_provider(config))


def rerun_command(
    config: pytest.Config, nodeid: str, cassette: Path, *options: str, budget: int | None = None
) -> str:
    """Return the command that tries once more to heal a node, as this run did.

    Args:
        config: pytest's configuration.
        nodeid: the item.
        cassette: where its turns are recorded.
        options: what is to be different.
        budget: tokens, where those of this run were too few.
    """
    choices = choices_of(config)
    chosen = choices.record_mode()
    # What this run recorded is there now, and `once` adds nothing to a file.
    mode = mode_to_record(cassette) if chosen == "once" else chosen
    provider = choices.provider_option
    return _heal_again(config, nodeid, mode, *options, provider=provider, budget=budget)


def recording_command(config: pytest.Config, nodeid: str, cassette: Path, *options: str) -> str:
    """Return the command that heals one node with answers that were not recorded so far."""
    mode = mode_to_record(cassette)
    return _heal_again(config, nodeid, mode, *options, provider=_asked_provider(config))


def other_model_command(config: pytest.Config, nodeid: str, cassette: Path) -> str:
    """Return the command that asks another model, of the service that is asked now."""
    mode, provider = mode_to_record(cassette), _asked_provider(config)
    if service := split_provider(provider):
        return _heal_again(config, nodeid, mode, provider=f"{service[0]}:MODEL")
    return _heal_again(config, nodeid, mode, "--regen-model", "MODEL", provider=provider)


def corrected_command(config: pytest.Config, nodeid: str, provider: str) -> str:
    """Return the command that heals one node as this run did, with a provider spelt right."""
    return _heal_again(config, nodeid, choices_of(config).record_mode(), provider=provider)


def replay_command(config: pytest.Config, nodeid: str, provider: str) -> str:
    """Return the command that replays what was recorded with a provider."""
    return _heal_again(config, nodeid, "none", provider=provider)


def _heal_again(
    config: pytest.Config,
    nodeid: str,
    mode: str,
    *options: str,
    provider: str | None,
    budget: int | None = None,
) -> str:
    """Return the command that heals one node with what was typed for this run.

    Args:
        config: pytest's configuration.
        nodeid: the item.
        mode: in which turns are recorded.
        options: what is to be different.
        provider: who answers.
        budget: tokens, where those of this run were too few.
    """
    choices, typed = choices_of(config), config.option
    words = ["--regen"]
    if choices.pending:
        # Whoever pastes the command would have files replaced that were to be reviewed.
        words.append("--regen-pending")
    if mode != "none":
        words += ["--regen-record", mode]
    if choices.ignore_stale:
        words.append("--regen-ignore-stale")
    # The name of a service's model, or of the template, leaves no room for another one.
    is_model_named = provider == TEMPLATE or split_provider(provider) is not None
    named = {
        "--regen-budget": budget or choices.budget,
        "--regen-attempts": typed.regen_attempts,
        "--regen-model": None if is_model_named else typed.regen_model,
        "--regen-provider": provider,
    }
    for name, value in named.items():
        if value is not None and name not in options:
            words += [name, str(value)]
    return node_command(config, nodeid, options=(*words, *options))


def asking_options(config: pytest.Config) -> tuple[str, ...]:
    """Return the provider and the model that were typed, as ``pytest-regen`` spells them."""
    provider, model = _asked_provider(config), config.option.regen_model
    if split_provider(provider) is not None:
        model = None
    named = {"--provider": provider, "--model": model}
    return tuple(word for name, value in named.items() if value for word in (name, value))


def _asked_provider(config: pytest.Config) -> str | None:
    """Return the provider that was typed, if it asks a model."""
    provider = choices_of(config).provider_option
    return None if provider == TEMPLATE else provider
