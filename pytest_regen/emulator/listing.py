"""Lists in pages, and the models as the API lists them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_regen.emulator.models import MODELS, Model, find_model
from pytest_regen.emulator.wire import ApiError

__all__ = ["model_info", "model_list", "page_of"]

_DEFAULT_LIMIT = 20
_MAX_LIMIT = 1_000
_LIMIT = re.compile("[0-9]{1,9}")


def page_of(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of ``items`` that ``limit``, ``after_id`` and ``before_id`` ask for.

    Raises:
        ApiError: 400, a parameter is wrong.
    """
    limit = query.get("limit", str(_DEFAULT_LIMIT))
    if not _LIMIT.fullmatch(limit) or not 1 <= int(limit) <= _MAX_LIMIT:
        raise ApiError(f"limit: Input should be between 1 and {_MAX_LIMIT}")
    ids = [item["id"] for item in items]
    first, last = 0, len(items)
    if "after_id" in query:
        first = _position(ids, query["after_id"], "after_id") + 1
    if "before_id" in query:
        last = _position(ids, query["before_id"], "before_id")
        first = max(first, last - int(limit))
    page = list(items[first : min(last, first + int(limit))])
    more = first > 0 if "before_id" in query else first + len(page) < last
    return {
        "data": page,
        "has_more": more,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def _position(ids: Sequence[str], id_: str, name: str) -> int:
    if id_ not in ids:
        raise ApiError(f"{name}: '{id_}' is not in this list")
    return ids.index(id_)


def model_list(query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of the models, newest first."""
    return page_of([_info(model) for model in MODELS], query)


def model_info(name: str) -> dict[str, Any]:
    """Return one model by id or alias.

    Raises:
        ApiError: 404.
    """
    model = find_model(name)
    if model is None:
        raise ApiError(f"model: {name}", status=404)
    return _info(model)


def _info(model: Model) -> dict[str, Any]:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.display_name,
        "created_at": model.created_at,
        "lifecycle": "deprecated" if model.deprecated else "active",
        "line": model.line,
        "max_input_tokens": model.max_input,
        "max_tokens": model.max_output,
    }
