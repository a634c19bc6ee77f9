"""The description of the API in OpenAPI 3.1, made of the operations themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .operation import Operation, Parameter


def openapi(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """The document."""
    paths: dict[str, Any] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    schemes = {
        "cookie": {"type": "apiKey", "in": "cookie", "name": "estimator-console-PORT"},
        "token": {"type": "http", "scheme": "bearer"},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "estimator console", "version": version, "description": __doc__},
        "paths": paths,
        "components": {"securitySchemes": schemes},
        "security": [{"cookie": []}, {"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    in_path = re.findall(r"\{(\w+)\}", operation.path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path]
    parameters += [_parameter(each) for each in operation.parameters]
    done = "202" if operation.method == "POST" else "200"
    refused = {
        "content": {
            "application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}},
        }
    }
    return {
        "summary": operation.says,
        "parameters": parameters,
        "responses": {
            done: {"description": "As the summary says."},
            "default": {"description": "A sentence.", **refused},
        },
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.default is not None:
        schema["default"] = parameter.default
    if parameter.kind == "integer":
        schema |= {"minimum": parameter.least, "maximum": parameter.most}
    return {"name": parameter.name, "in": "query", "description": parameter.says, "schema": schema}
