"""Run Horovod's own tests and examples, from a checkout of its repository, through an Estimator.

    git clone --branch v0.28.1 https://github.com/horovod/horovod
    python -m tests.interop.horovod_suites horovod                         # its tests, on 2 ranks that are processes
    python -m tests.interop.horovod_suites horovod --ranks 4 --only test_tensorflow2_keras
    python -m tests.interop.horovod_suites horovod --reworded              # with today's words for what Keras 3 renamed
    python -m tests.interop.horovod_suites horovod --examples              # its examples that download nothing
    python -m tests.interop.horovod_suites horovod --backend docker        # on two containers of our newest image
    python -m tests.interop.horovod_suites horovod --backend docker --framework pytorch

Processes run in the environment of the Python that runs this, which needs the framework and Horovod. Nothing of the
checkout is changed. Ends with an error when a test fails that `known.json` does not list, when one passes that it
lists, and when an example fails or its ranks come to different weights. The tables in `docs/horovod.md` come of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from estimator_sdk.backends.docker.images import catalogue
from tests.interop.horovod_suites import examples, known, suites
from tests.interop.horovod_suites.world import World


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", choices=["process", "docker"], default="process")
    parser.add_argument("--framework", choices=list(suites.SUITES), default="tensorflow")
    parser.add_argument("--image", help="in the place of our newest image of the framework")
    parser.add_argument("--only", nargs="*", help="suites or examples")
    parser.add_argument("--reworded", action="store_true", help="write what Keras 3 renamed as it is called today")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], help="variables of the ranks, NAME=VALUE")
    parser.add_argument("-k", help="only tests whose names match, as pytest has it")
    return parser.parse_args()


def world_of(settings: argparse.Namespace) -> World:
    image = settings.image or catalogue.newest(settings.framework).name
    return World(
        settings.ranks,
        settings.backend,
        image if settings.backend == "docker" else None,
        {**suites.VARIABLES[settings.framework], **dict(each.split("=", 1) for each in settings.set)},
    )


def run_examples(settings: argparse.Namespace) -> bool:
    well = []
    for example in examples.EXAMPLES[settings.framework]:
        if not settings.only or example.name in settings.only:
            text, ended_well = examples.report(settings.checkout, example, world_of(settings))
            print(text, flush=True)
            well.append(ended_well)
    return all(well)


def run_suites(settings: argparse.Namespace) -> bool:
    well = []
    with tempfile.TemporaryDirectory() as folder:
        code = suites.code_of_tests(settings.checkout, Path(folder) / "code", settings.reworded)
        for suite in settings.only or suites.SUITES[settings.framework]:
            listed = known.read()
            result = suites.run(code, suite, world_of(settings), listed, settings.k)
            text, fits = suites.report(suite, result, listed, settings.reworded, selected=bool(settings.k))
            if not well:
                print(", ".join(f"{name} {version}" for name, version in result.versions.items()))
            print(text, flush=True)
            well.append(fits)
    return all(well)


def main() -> int:
    settings = arguments()
    return 0 if (run_examples if settings.examples else run_suites)(settings) else 1


if __name__ == "__main__":
    sys.exit(main())
