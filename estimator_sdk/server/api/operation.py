"""What the API is made of: operations that say what they take, so that one list gives the routes and OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from anyio import to_thread
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ...errors import BackendError, EstimatorError, InvalidArgument, JobNotFound
from ...values import strict_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..state import Console

Answer = Callable[["Console", "Values"], object]
"""Makes the document of an answer, in a thread. Raises EstimatorError."""
Stream = Callable[["Console", "Values", "Request"], Awaitable[Response]]
"""Makes an answer that is not a document. Raises EstimatorError."""


@dataclass(frozen=True)
class Parameter:
    """A word of an address's query."""

    name: str
    kind: Literal["string", "integer", "number"]
    says: str
    default: str | float | None = None
    least: int = 0
    most: int = 1 << 53


class JsonAnswer(JSONResponse):
    """An answer in JSON, whatever texts it has."""

    def render(self, content: object) -> bytes:
        """Half a surrogate, as the name of a file may have it, is an escape."""
        text = strict_json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class Operation:
    """One address of the API; `{job}` in it is a job's name."""

    path: str
    says: str
    parameters: tuple[Parameter, ...] = ()
    answer: Answer | None = None
    stream: Stream | None = None
    method: Literal["GET", "POST"] = "GET"
    is_slow: bool = False
    """Whether an answer may take seconds: these wait for each other, and nothing else waits for them."""

    def route(self, console: Console) -> Route:
        """The operation for Starlette."""

        async def respond(request: Request) -> Response:
            try:
                values = Values(self, request)
                if self.stream is not None:
                    return await self.stream(console, values, request)
                assert self.answer is not None
                limiter = console.threads_for(values.job, self.is_slow)
                found = await to_thread.run_sync(self.answer, console, values, limiter=limiter)
                return JsonAnswer(found, 202 if self.method == "POST" else 200)
            except EstimatorError as error:
                return JSONResponse({"error": str(error)}, _status_of(error))
            except ValueError as error:  # of what a job's files say, such as a time that is not a number
                return JSONResponse({"error": f"the files of the job cannot be shown: {error}"}, 500)
            except PermissionError as error:
                return JSONResponse({"error": f"{error}; the user who runs the console may not do that"}, 403)
            except OSError as error:
                return JSONResponse({"error": f"{error}; it may pass: try again"}, 503)

        return Route(self.path, respond, methods=[self.method])


class Values:
    """What a request says, each word of the type that the operation names. Raises InvalidArgument for any other."""

    def __init__(self, operation: Operation, request: Request) -> None:
        self.job: str = request.path_params.get("job", "")
        known = {each.name: each for each in operation.parameters}
        unknown = [name for name in request.query_params if name not in known]
        if unknown:
            what = f"{unknown[0]!r} is not a parameter of {operation.path}"
            raise InvalidArgument(unknown[0], f"{what}; known: {', '.join(known) or 'none'}")
        self._values: dict[str, Any] = {
            name: _value(each, request.query_params[name]) if request.query_params.get(name) else each.default
            for name, each in known.items()
        }

    def text(self, name: str) -> str | None:
        """A string, None where it is absent."""
        value: str | None = self._values[name]
        return value

    def number(self, name: str) -> int | None:
        """A whole number, None where it is absent."""
        value: int | None = self._values[name]
        return value

    def real(self, name: str) -> float | None:
        """A number, None where it is absent."""
        value: float | None = self._values[name]
        return value


def _value(parameter: Parameter, text: str) -> str | float:
    if parameter.kind == "string":
        return text
    try:
        number = int(text) if parameter.kind == "integer" else float(text)
        if parameter.least <= number <= parameter.most:
            return number
    except ValueError:
        pass
    what = f"{parameter.name} must be a number from {parameter.least} to {parameter.most}"
    raise InvalidArgument(parameter.name, f"{what}, not {text[:40]!r}")


def _status_of(error: EstimatorError) -> int:
    match error:
        case InvalidArgument():
            return 400
        case JobNotFound():
            return 404
        case BackendError():
            return 502
        case _:
            return 409
