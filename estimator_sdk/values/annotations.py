"""Annotations as types, on Python 3.9, too, which is the newest that some hosts have."""

from __future__ import annotations

import ast
import sys
from typing import Any, Union, get_type_hints

if sys.version_info >= (3, 10):
    from types import UnionType
else:
    UnionType = Union  # `int | None` is none yet

UNIONS: tuple[object, ...] = (Union, UnionType)
"""What `typing.get_origin` returns for a union, however it is written."""
NoneType = type(None)


def type_hints(cls: type) -> dict[str, Any]:
    """The annotations of a class and its bases, evaluated."""
    return get_type_hints(cls) if sys.version_info >= (3, 10) else evaluated(cls)


def evaluated(cls: type) -> dict[str, Any]:
    """The same on Python 3.9, where all annotations are text: `int | None` is read as `Union[int, None]`."""
    return {
        name: _evaluated(text, vars(sys.modules[base.__module__]))
        for base in reversed(cls.__mro__)
        for name, text in vars(base).get("__annotations__", {}).items()
    }


def _evaluated(text: str, names: dict[str, Any]) -> object:
    tree = ast.fix_missing_locations(_Unions().visit(ast.parse(text, mode="eval")))
    return eval(compile(tree, text, "eval"), {**names, "Union": Union})


class _Unions(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        sides = ast.Tuple([self.visit(node.left), self.visit(node.right)], ast.Load())
        return ast.Subscript(ast.Name("Union", ast.Load()), sides, ast.Load())
