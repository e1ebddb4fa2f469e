"""What can go wrong with a request, as the status, code and words of an answer."""

from collections.abc import Mapping
from http import HTTPStatus

__all__ = ["Problem"]


class Problem(Exception):  # noqa: N818 - an answer to be sent, no defect of the program
    """Ends a request with an answer that says why; never carries the text of an exception.

    Args:
        status: of the answer.
        code: stable name of the problem, in capitals.
        message: one sentence for a person.
        where: JSON pointer of the field at fault.
        retry_after: whole seconds after which it makes sense to try again.
        headers: further headers of the answer.
        details: further members of the answer.
    """

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        message: str,
        *,
        where: str | None = None,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message
        self.where = where
        self.retry_after = retry_after
        self.details = dict(details or {})
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["retry-after"] = str(retry_after)

    def as_json(self, request_id: str) -> dict[str, object]:
        """Return the members of the answer."""
        members: dict[str, object] = {
            "error": self.message,
            "code": self.code,
            "request_id": request_id,
        }
        if self.where is not None:
            members["where"] = self.where
        if self.retry_after is not None:
            members["retry_after"] = self.retry_after
        return members | self.details
