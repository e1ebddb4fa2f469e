"""Names that a run shows: files of cassettes, and the commands that messages suggest."""

import re
import shlex
from collections.abc import Callable, Sequence
from hashlib import md5
from pathlib import Path

import pytest

from pytest_regen.canonical import text_hash
from pytest_regen.files import safe_file_name
from pytest_regen.modes import TEMPLATE, split_provider
from pytest_regen.pytest_plugin.choices import cassette_mark, choices_of
from pytest_regen.pytest_plugin.options import usage_error
from pytest_regen.pytest_plugin.project import id_from_here

_FORBIDDEN = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)", re.IGNORECASE)
"""What Windows takes for a device, whatever comes after the dot."""
_SUFFIXES = (".yaml", ".yml", ".json")
_LONGEST_NAME = 200
"""Bytes; file systems stop at 255, and names of ours get a suffix."""
_LONGEST_FILE = 255


def cassette_of_test(item: pytest.Item, default: str | None = None) -> Path:
    """Return the file of a test's own cassette: ``<folder>/cassettes/<module>/<test>.yaml``.

    Args:
        item: the test.
        default: the name given elsewhere than by its marker, which wins.

    Raises:
        pytest.UsageError: the name leads out of the folder.
    """
    folder = item.path.parent / "cassettes" / item.path.stem
    name = cassette_mark(item).name or default
    if name is not None:
        return _explicit_cassette(item, folder, name)
    name = plain_cassette_name(item, lambda: folder)
    if len(name.encode()) > _LONGEST_NAME:
        name = safe_file_name(name)
    return folder / f"{name}.yaml"


def _explicit_cassette(item: pytest.Item, folder: Path, name: str) -> Path:
    """Return the cassette of a name that a person chose, with folders in it or without."""
    what = f"{item.nodeid}: cassette(name={name!r})"
    if not name.rpartition("/")[2].strip():
        hint = "name the file, with or without .yaml, or leave the name out"
        raise usage_error(f"{what} names no file", hint=hint)
    file = Path(name if name.removesuffix(".gz").endswith(_SUFFIXES) else f"{name}.yaml")
    if file.is_absolute() or ".." in file.parts or "\0" in name:
        hint = "name a file below that folder"
        raise usage_error(f"{what} leads out of {folder}", hint=hint)
    stem = file.name.removesuffix(".gz").rpartition(".")[0]
    parts = []
    for part in (*file.parts[:-1], stem):
        # Names in other alphabets stay; what no file system takes gets a name that all take.
        is_plain = part.isprintable() and part == part.translate(_FORBIDDEN)
        is_plain = is_plain and len(part.encode()) <= _LONGEST_NAME and not _RESERVED.match(part)
        parts.append(part if is_plain else safe_file_name(part.replace(".", "_")))
    return folder.joinpath(*parts[:-1], parts[-1] + file.name[len(stem) :])


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
    from pytest_regen.credentials.search import scrub_text

    clean, plain = scrub_text(name), name.translate(_FORBIDDEN)
    # Of whatever suffix: the serializer of the suite chooses it.
    if clean == name or (
        folder().is_dir() and any(file.name.startswith(f"{plain}.") for file in folder().iterdir())
    ):
        return plain
    # Cases with two credentials are two cassettes.
    return f"{clean}-{text_hash(name).removeprefix('sha256:')[:8]}".translate(_FORBIDDEN)


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
    folder, slash, file = name.rpartition("/")
    # That plugin counts characters, file systems bytes.
    size = len(file.encode()) + len(suffix) + (not suffix.startswith("."))
    if size > _LONGEST_FILE and not file.endswith(suffix):
        return f"{folder}{slash}{safe_file_name(file)}"
    return name


def own_cassette(item: pytest.Item) -> Path | None:
    """Return the cassette of a test that has one of its own, as far as its markers name it."""
    fixtures = getattr(item, "fixturenames", None)
    if fixtures is None:
        return None
    # What a test with the marker `regen` regenerates is recorded there, too.
    marks = (item.get_closest_marker(name) for name in ("cassette", "regen"))
    return cassette_of_test(item) if any(marks) or "cassette" in fixtures else None


def node_command(config: pytest.Config, *nodeids: str, options: Sequence[str] = ()) -> str:
    """Return the command that runs just these nodes."""
    return shlex.join(["pytest", *(id_from_here(node, config) for node in nodeids), *options])


def heal_again(
    config: pytest.Config, nodeid: str, mode: str, *options: str, provider: str | None
) -> str:
    """Return the command that heals one node with what was typed for this run.

    Args:
        config: pytest's configuration.
        nodeid: the item.
        mode: in which turns are recorded.
        options: what is to be different.
        provider: who answers.
    """
    choices = choices_of(config)
    # Whoever pastes the command would have files replaced that were to be reviewed.
    words = ["--regen", *(["--regen-pending"] if choices.pending else [])]
    if mode != "none":
        words += ["--regen-record", mode]
    if choices.ignore_stale:
        words.append("--regen-ignore-stale")
    values = {
        "--regen-budget": choices.budget,
        "--regen-attempts": choices.attempts_option,
        "--regen-model": config.option.regen_model,
        "--regen-provider": provider,
    }
    if provider == TEMPLATE or split_provider(provider):
        # The name of a service's model, or of the template, leaves no room for another one.
        del values["--regen-model"]
    for name, value in values.items():
        if value is not None and name not in options:
            words += [name, str(value)]
    return node_command(config, nodeid, options=(*words, *options))


def heal_command(
    config: pytest.Config, nodeid: str, cassette: Path, *, by_template: bool = False
) -> str:
    """Return the command that heals one node.

    What was never recorded cannot be replayed: the command records it. The template, where it is
    chosen or wrote the type before, records nothing.
    """
    if by_template:
        return heal_again(config, nodeid, "none", provider=choices_of(config).provider_option)
    mode = "none" if cassette.exists() else "once"
    return heal_again(config, nodeid, mode, provider=_asked_provider(config))


def rerun_command(config: pytest.Config, nodeid: str, cassette: Path, *options: str) -> str:
    """Return the command that tries once more to heal a node, as this run did.

    Args:
        config: pytest's configuration.
        nodeid: the item.
        cassette: where its turns are recorded.
        options: what is to be different.
    """
    choices = choices_of(config)
    mode: str = choices.record_mode()
    if mode == "once":
        # What this run recorded is there now, and `once` adds nothing to a file.
        mode = mode_to_record(cassette)
    return heal_again(config, nodeid, mode, *options, provider=choices.provider_option)


def recording_command(config: pytest.Config, nodeid: str, cassette: Path, *options: str) -> str:
    """Return the command that heals one node with answers that were not recorded so far."""
    mode, provider = mode_to_record(cassette), _asked_provider(config)
    return heal_again(config, nodeid, mode, *options, provider=provider)


def other_model_command(config: pytest.Config, nodeid: str, cassette: Path) -> str:
    """Return the command that asks another model, of the service that is asked now."""
    if service := split_provider(_asked_provider(config)):
        provider = f"{service[0]}:MODEL"
        return heal_again(config, nodeid, mode_to_record(cassette), provider=provider)
    return recording_command(config, nodeid, cassette, "--regen-model", "MODEL")


def asking_options(config: pytest.Config) -> tuple[str, ...]:
    """Return the provider and the model that were typed, as ``pytest-regen`` spells them."""
    provider, model = _asked_provider(config), config.option.regen_model
    options = ["--provider", provider] if provider else []
    if model and split_provider(provider) is None:
        options += ["--model", model]
    return tuple(options)


def _asked_provider(config: pytest.Config) -> str | None:
    """Return the provider that was typed, if it asks a model."""
    provider = choices_of(config).provider_option
    return None if provider == TEMPLATE else provider
