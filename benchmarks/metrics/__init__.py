"""The metrics: each module of this folder is one. They are taken in the order of their numbers."""

from importlib import import_module
from pkgutil import iter_modules

from ..harness import Metric

_MODULES = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
METRICS: tuple[Metric, ...] = tuple(sorted((each.METRIC for each in _MODULES), key=lambda each: int(each.number[1:])))
