"""One rank that shares the CPUs of its host with other processes that are always busy."""

from __future__ import annotations

import multiprocessing

from estimator_container.training import mark_step
from truth import Truth, arguments, compute, work


def main() -> None:
    """Train on what the others leave."""
    parser = arguments()
    parser.add_argument("--others", type=int, default=0)
    given = parser.parse_args()
    others = [multiprocessing.Process(target=compute, args=(600_000,), daemon=True) for _ in range(given.others)]
    for other in others:
        other.start()
    truth = Truth(given.truth, 0)
    for _ in range(given.steps + 1):
        truth.count(work(given.computing_ms))
        mark_step()
        truth.step()
    truth.write()
    for other in others:
        other.kill()


main()
