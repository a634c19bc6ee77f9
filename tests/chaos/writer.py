"""A script that does nothing but write checkpoints, in all the ways that scripts do: `writer.py FOLDER SEED`.

Each generation is a folder of files that is renamed into place, then a file that is renamed over the one before, then
a file that is written anew in place, then a line that is appended to a log, which stays open. Every file proves
itself, so that one that is torn, or of another generation than it should be, is known. `problems` looks at a folder
that was restored.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

PARTS = 3  # files in a step's folder
KEPT = 3  # steps
MAX_SIZE = 200_000  # bytes of a file
HEADER = 64
LOG = "log"


def content(generation: int, name: str) -> bytes:
    """What a file of a generation holds; no two are alike."""
    chance = random.Random(f"{generation} {name}")
    body = chance.randbytes(chance.randrange(1, MAX_SIZE))
    digest = hashlib.sha256(f"{generation} {name} ".encode() + body).hexdigest()
    return digest.encode() + f"{generation} {name}\n".encode() + body


def generation_of(data: bytes) -> int | None:
    """The generation whose content this is, byte for byte; None if it is nobody's."""
    line, _, _ = data[HEADER:].partition(b"\n")
    try:
        number, name = line.decode().split(" ")
        return int(number) if data == content(int(number), name) else None
    except ValueError:
        return None


def newest_step(folder: Path) -> int:
    return max((int(step.name) for step in folder.glob("steps/*") if step.name.isdigit()), default=0)


def write_generation(folder: Path, generation: int, chance: random.Random, log: BinaryIO) -> None:
    """One checkpoint, in the order that `problems` knows."""
    step = folder / "steps" / str(generation)
    if not step.exists():
        write_step(folder, generation, chance)
    for old in range(generation - KEPT, 0, -1):
        step = folder / "steps" / str(old)
        if not step.exists():
            break
        for file in step.iterdir():
            file.unlink()
        step.rmdir()
    write_slowly(folder / "latest.new", content(generation, "latest"), chance)
    (folder / "latest.new").rename(folder / "latest")
    write_slowly(folder / "in-place", content(generation, "in-place"), chance)
    log.write(log_line(generation))


def open_log(folder: Path) -> BinaryIO:
    return (folder / LOG).open("ab", buffering=0)


def log_line(generation: int) -> bytes:
    """Long enough that it may cross a page, which is where a copy could tear it."""
    return f"{generation} {'.' * (generation * 37 % 3000)}{generation}\n".encode()


def write_step(folder: Path, generation: int, chance: random.Random) -> None:
    draft = folder / "steps" / f".{generation}"
    draft.mkdir(parents=True, exist_ok=True)
    for part in range(PARTS):
        write_slowly(draft / f"part-{part}", content(generation, f"part-{part}"), chance)
    draft.rename(folder / "steps" / str(generation))


def write_slowly(path: Path, data: bytes, chance: random.Random) -> None:
    """In pieces, so that a look at the wrong moment finds a part of it."""
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(data), 1 << 15):
            file.write(data[start : start + (1 << 15)])
            if chance.random() < 0.2:
                time.sleep(0.002)


def problems(folder: Path) -> list[str]:
    """What is wrong with a folder that was restored: nothing, if it is a state that the writer left at one moment."""
    found = []
    step = newest_step(folder)
    numbers = {"step": step}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        parts = path.relative_to(folder).parts
        if parts[0] == "latest.new" or (parts[1:2] and parts[1].startswith(".")):
            continue  # a draft, which may hold anything that is closed
        if parts == (LOG,):
            numbers[LOG] = newest_in_log(path.read_bytes(), found)
            continue
        generation = generation_of(path.read_bytes())
        if generation is None:
            found.append(f"torn: {path.relative_to(folder)}")
        elif parts[0] == "steps" and generation != int(parts[1]):
            found.append(f"mixed: {path.relative_to(folder)} is of generation {generation}")
        numbers[parts[0]] = generation or 0
    for number in range(max(1, step - KEPT + 1), step + 1):
        there = sorted(path.name for path in (folder / "steps" / str(number)).glob("*"))
        # The oldest step may be half deleted: that is a state that the folder was in.
        if there != [f"part-{part}" for part in range(PARTS)] and number > step - KEPT + 1:
            found.append(f"mixed: step {number} has {there}")
    latest, in_place = numbers.get("latest", 0), numbers.get("in-place", 0)
    if not (latest <= step <= latest + 1 and in_place <= latest <= in_place + 1):
        found.append(f"mixed: step {step}, latest {latest}, in-place {in_place}")
    if numbers.get(LOG) and not in_place - 1 <= numbers[LOG] <= in_place:
        found.append(f"mixed: in-place {in_place}, log {numbers[LOG]}")
    return found


def newest_in_log(data: bytes, found: list[str]) -> int:
    """The generation of its last line; each line was written by one call, so none may be torn."""
    lines = data.splitlines(keepends=True)
    numbers = [int(line.partition(b" ")[0] or b"0") if line[:1].isdigit() else 0 for line in lines]
    if any(log_line(number) != line for number, line in zip(numbers, lines, strict=True)):
        found.append("torn: log")
    jumps = [(before, after) for before, after in pairwise(numbers) if not before <= after <= before + 1]
    if jumps:
        found.append(f"mixed: the log goes from line {jumps}")
    return numbers[-1] if numbers else 0


def main(folder: Path, seed: str) -> None:
    chance = random.Random(seed)
    generation = max(1, newest_step(folder))  # again: it may not have come to its end
    log = open_log(folder)
    while True:
        write_generation(folder, generation, chance, log)
        generation += 1
        if chance.random() < 0.1:  # otherwise it would never be in a snapshot
            log.close()
            log = open_log(folder)
        time.sleep(chance.choice([0, 0.005, 0.02, 0.05]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
