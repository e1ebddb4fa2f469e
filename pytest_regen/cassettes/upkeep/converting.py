"""A foreign cassette written anew in our layout, decoded and without its credentials."""

from pathlib import Path

from pytest_regen.atomic import replace_file
from pytest_regen.cassettes.files.format import header_text, interaction_text
from pytest_regen.cassettes.files.reading import read_cassette
from pytest_regen.cassettes.files.replacing import unwritable
from pytest_regen.cassettes.files.writing import checked_text
from pytest_regen.cassettes.recording import WireExchange, kept_exchange
from pytest_regen.cassettes.scrubbing import scrub_value
from pytest_regen.cassettes.values import Interaction
from pytest_regen.errors import UsageError

__all__ = ["convert_cassette"]


def convert_cassette(path: Path, out: Path | None = None) -> tuple[Path, int]:
    """Rewrite a cassette; return where it is now and how many recordings it holds.

    Args:
        path: the cassette as vcrpy or a project's own serializer wrote it.
        out: where to write; by default the same file, named ``.yaml`` if it was JSON.

    Raises:
        UsageError: there is no such file, it holds nothing, or the target exists already.
        CassetteError: it cannot be read or written, or holds what cannot be scrubbed.
    """
    file = read_cassette(path)
    if file is None:
        raise UsageError(f"{path} is not there", hint="name a cassette")
    if not file.interactions:
        raise UsageError(f"{path} holds no recording", hint="delete it, or record into it")
    target = out or path.with_suffix(".yaml" if path.suffix.lower() == ".json" else path.suffix)
    if target != path and target.exists():
        raise UsageError(
            f"{target} is there already", hint="delete it, or name another with --out FILE"
        )
    exchanges = [_exchange(stored.interaction) for stored in file.interactions]
    text = header_text(
        {
            **scrub_value(file.metadata),
            "source": ", ".join(sorted({one.source for one in exchanges})),
            "models": sorted({one.model for one in exchanges if one.model}),
        }
    ) + "".join(interaction_text(kept_exchange(one)) for one in exchanges)
    try:
        replace_file(target, checked_text(target, text))
    except OSError as error:
        raise unwritable(target, error) from error
    return target, len(exchanges)


def _exchange(found: Interaction) -> WireExchange:
    return WireExchange(
        method=found.method,
        uri=found.uri,
        request_headers=found.request_headers,
        request_body=found.request_body,
        status=found.status,
        reason=found.reason,
        response_headers=found.response_headers,
        response_body=found.response_body,
        end=found.end,
        chunks=found.chunks,
    )
