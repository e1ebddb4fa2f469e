"""What stock vcrpy plays from a cassette, compared with what it played from another."""

import json
from collections.abc import Sequence
from typing import Any

from vcr import VCR
from vcr.cassette import Cassette
from vcr.record_mode import RecordMode as VcrRecordMode
from vcr.serialize import deserialize
from vcr.serializers import jsonserializer, yamlserializer

from pytest_regen.cassettes.clients.vcr.bodies import body_bytes
from pytest_regen.cassettes.files.decoding import UndecodableBodyError, decoded_body
from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.cassettes.values import by_lower_name

__all__ = ["VcrpyCannotReadError", "lost_for_vcrpy"]


class VcrpyCannotReadError(Exception):
    """vcrpy itself cannot read a file, so whoever uses it has a serializer of their own."""


def lost_for_vcrpy(
    old: str, new: str, answers: Sequence[bytes], *, is_json: bool, as_json: bool
) -> str:
    """Return which request of a cassette another one does not answer as well; empty for none.

    With vcrpy's own serializer, matching and persister, as a suite has them that configures none.

    Args:
        old: the text of the one.
        new: the text of the other, in YAML.
        answers: the decoded bodies that the other should give, in order.
        is_json: whether the one is JSON.
        as_json: whether an answer that is the same JSON is as good as one of the same bytes.

    Raises:
        VcrpyCannotReadError: vcrpy does not read the one.
    """
    try:
        requests, responses, *_ = deserialize(old, jsonserializer if is_json else yamlserializer)
    except Exception as error:
        raise VcrpyCannotReadError(f"{type(error).__name__}: {error}") from error
    options = VCR(record_mode=VcrRecordMode.NONE).get_merged_config(path="x")
    cassette = Cassette.load(**_of_cassette(options), persister=_Given(new))
    for number, (request, response, wanted) in enumerate(
        zip(requests, responses, answers, strict=True), 1
    ):
        place = f"recording {number} ({request.method} {request.path})"
        if not cassette.can_play_response_for(request):
            return f"{place} would not be found any more by a test that is marked vcr"
        played = cassette.play_response(request)
        if played["status"]["code"] != response["status"]["code"]:
            return f"{place} would have another status"
        if not _is_same(_body_of(played), wanted, as_json=as_json):
            return f"{place} would have another body for a test that is marked vcr"
    return ""


class _Given:
    """Gives vcrpy a text in place of a file."""

    def __init__(self, text: str) -> None:
        self._text = text

    def load_cassette(self, cassette_path: str, serializer: Any) -> Any:  # noqa: ANN401, ARG002 - vcrpy's
        """Return the requests and answers."""
        return deserialize(self._text, yamlserializer)


def _of_cassette(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a cassette takes of those that VCR has."""
    not_its = {"path_transformer", "func_path_generator", "record_on_exception", "persister"}
    return {name: value for name, value in options.items() if name not in not_its}


def _body_of(played: Any) -> bytes:  # noqa: ANN401 - vcrpy's
    body = body_bytes((played.get("body") or {}).get("string"))
    headers = {str(n): v for n, v in (played.get("headers") or {}).items()}
    try:
        return decoded_body(body, by_lower_name(headers))[0]
    except UndecodableBodyError:
        return body


def _is_same(played: bytes, wanted: bytes, *, as_json: bool) -> bool:
    if played == wanted:
        return True
    if not as_json or json_or_none(wanted) is None:
        return False
    return bool(json.loads(played) == json.loads(wanted))
