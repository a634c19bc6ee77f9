"""Take the metrics and write the report.

    scripts/bench                                # all of them; writes docs/performance.md
    scripts/bench --quick                        # smaller N, fewer runs; writes build/benchmarks
    scripts/bench --metric S1 S7 --runs 3        # some; writes build/benchmarks
    scripts/bench --again --metric S4            # puts a metric in the place of what docs has of it
    scripts/bench --large                        # S7 with 100 million lines, S8 and S10 with 1 GB and 5,000 files,
                                                 # S14 for 40 minutes; writes docs/large

A peer that is missing ends the run before anything is timed, unless `--without-peer` says that it is known to be.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from pathlib import Path

from . import peers, report, results
from .harness import ROOT, Extent, Metric, take
from .metrics import METRICS

RUNS, QUICK_RUNS, LARGE_RUNS = 7, 2, 3
WITH_LARGE = ("S7", "S8", "S10", "S14")


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    numbers = [metric.number for metric in METRICS]
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help=f"smaller N, {QUICK_RUNS} runs")
    extent.add_argument("--large", action="store_true", help=f"of {', '.join(WITH_LARGE)} what takes minutes a run")
    parser.add_argument(
        "--metric", nargs="+", action="extend", choices=numbers, metavar="S", help=f"of {', '.join(numbers)}"
    )
    parser.add_argument("--runs", type=int, help=f"of each way; {RUNS}, {QUICK_RUNS} or {LARGE_RUNS} without it")
    parser.add_argument(
        "--without-peer",
        action="append",
        default=[],
        choices=list(peers.PEERS),
        metavar="NAME",
        help=f"do without one of {', '.join(peers.PEERS)}; the report says so",
    )
    parser.add_argument("--out", type=Path, help="folder for performance.md and performance/")
    parser.add_argument(
        "--again", action="store_true", help="put the metrics in the place of what the results in --out have of them"
    )
    parser.add_argument(
        "--report", action="store_true", help="take nothing: write the report of the results that lie in --out"
    )
    return parser.parse_args(argv)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))  # servers and frozen ways are ended
    settings = arguments()
    chosen = [metric for metric in METRICS if not settings.metric or metric.number in settings.metric]
    whole = len(chosen) == len(METRICS) and not settings.quick
    if settings.large:
        chosen = [metric for metric in chosen if metric.number in WITH_LARGE]
    docs = ROOT / "docs" / ("large" if settings.large else "")
    out = settings.out or (docs if whole or settings.report or settings.again else ROOT / "build" / "benchmarks")
    if settings.report:
        report.write(results.read(out), out)
        return 0
    needed = dict.fromkeys(name for metric in chosen for name in metric.peers if name not in settings.without_peer)
    versions, missing = peers.versions(needed)
    if missing:
        names = " ".join(f"--without-peer {name}" for name in missing)
        print(f"missing: {', '.join(missing)}. Run scripts/setup benchmarks, or do without: {names}", file=sys.stderr)
        return 2
    runs = settings.runs or (QUICK_RUNS if settings.quick else LARGE_RUNS if settings.large else RUNS)
    extent = Extent(runs, settings.quick, frozenset(settings.without_peer), settings.large)
    numbers = [metric.number for metric in chosen]
    run = results.again(out, numbers) if settings.again else results.begin(extent, versions)
    failed = [metric.number for metric in chosen if not one(metric, extent, run, out)]
    report.write(run, out)
    print(f"\n{out / 'performance.md'}; {len(chosen)} metrics in {run['seconds'] / 60:.0f} minutes")
    if failed:
        print(f"{', '.join(failed)} could not be taken: see above", file=sys.stderr)
    return 1 if failed else 0


def one(metric: Metric, extent: Extent, run: results.Run, out: Path) -> bool:
    """Take a metric and keep what it gave, so that what fails or is ended later does not lose it."""
    print(f"{metric.number} {metric.title}", flush=True)
    started, failure, taken = time.monotonic(), None, []
    try:
        taken = take(metric, extent, lambda line: print(line, flush=True))
    except Exception as error:
        traceback.print_exc()
        failure = f"{type(error).__name__}: {error}".splitlines()[0][:500]
    results.add(run, metric, extent, taken, time.monotonic() - started, failure)
    results.write(run, out)
    return failure is None


if __name__ == "__main__":
    sys.exit(main())
