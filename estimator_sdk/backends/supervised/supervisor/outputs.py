"""Make the archives of a job from what its hosts left."""

from __future__ import annotations

import filecmp
import os
import posixpath
import shutil
import stat
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from estimator_container.contract.names import Layout

from ....plan.plan import HostPlan, Plan
from ....values.home import JobFolder
from ....values.naming import some

# Weights hardly compress, so the fastest level costs least for the same size.
COMPRESSION_LEVEL = 1
MODEL = "model.tar.gz"
DATA = "output.tar.gz"
_PATH_MAX = 4096  # bytes with the NUL at the end, linux/limits.h
_WIDTH = 60  # characters of a long name
_FOLDERS = {MODEL: "model", DATA: "output_data"}


class KeptOutputs(NamedTuple):
    """What became of the outputs of a job."""

    made: dict[str, str]
    """What to record of them."""
    failed: str
    """Why not all of them are where they belong; empty where they are."""
    said: list[str]
    """Sentences on what is not as the script left it."""


def keep(
    plan: Plan,
    folder: JobFolder,
    uri: str,
    with_model: bool,
    not_sent: tuple[str, str],
    upload: Callable[[str, Mapping[str, Path]], str],
) -> KeptOutputs:
    """Make the archives and bring them to where they belong, below a URI.

    `not_sent` says of `output/intermediate` what of it no store can hold, and why the rest is not in its store.
    `upload` sends files, by their names below the URI, and returns why it could not. Raises OSError.
    """
    local = Path(uri.removeprefix("file://")) if uri.startswith("file://") else folder.output
    if local.is_relative_to(folder.path):
        os.umask(0o077)  # as all that is kept in the home; elsewhere the user's own umask says who may read them
    not_uploadable, not_uploaded = not_sent
    said = [*write(plan, folder, local, with_model), not_uploadable]
    made = {"model_data": f"{uri}/{MODEL}"} if with_model else {}
    reasons = [not_uploaded]
    if not uri.startswith("file://"):
        reasons.append(upload(uri, {str(path.relative_to(local)): path for path in local.rglob("*") if path.is_file()}))
        made = {} if reasons[-1] else made
        if not any(reasons):
            shutil.rmtree(local)  # each is whole in the store
    if not any(reasons):
        return KeptOutputs(made, "", said)
    kept = f"the archives are in {local}, those of the hosts in {folder.hosts}"
    what = f"the outputs of {plan.job_name} are not all in {uri}: {'; '.join(filter(None, reasons))}"
    return KeptOutputs(made, f"{what}; nothing is lost: {kept}", said)


def write(plan: Plan, folder: JobFolder, target: Path, with_model: bool) -> list[str]:
    """Make the archives that SageMaker makes of what the hosts left, and one for each host that is kept apart.

    Hosts that make the model together are merged file by file. One whose files differ from those of the same names
    that an earlier host left is kept apart too, whole, so nothing is lost. Returns sentences on that, and on what no
    archive can hold. Raises OSError when an archive cannot be written.
    """
    makers = plan.model_hosts or tuple(host.name for host in plan.hosts)
    said: list[str] = []
    for name in (MODEL, DATA):
        trees = {host.name: _tree(host, folder, name) for host in plan.hosts}
        left_out: list[str] = []
        clashes: Mapping[str, Collection[str]] = {}
        if with_model or name == DATA:
            archived = archive([trees[host] for host in makers], target / name)
            clashes, left_out = archived.clashes, archived.left_out
        for host, tree in trees.items():
            if host in clashes or (host not in makers and has_files(tree.path)):
                left_out += archive([tree], target / "hosts" / host / name).left_out
        if clashes:
            said.append(_about_clashes(name, clashes))
        if left_out:
            said.append(f"{name} leaves out what an archive cannot hold: {some(list(dict.fromkeys(left_out)))}")
    return said


def has_files(folder: Path) -> bool:
    """Whether a folder exists and is not empty. Raises OSError if it cannot be read."""
    return folder.is_dir() and any(folder.iterdir())


@dataclass(frozen=True)
class HostTree:
    """A folder that one host left."""

    host: str
    path: Path
    named: str
    """The path by which the script knew it, which in a container is another."""


@dataclass(frozen=True)
class Archived:
    """What there is to say of an archive."""

    clashes: Mapping[str, list[str]] = field(default_factory=dict)
    """Host -> the names of its files that are not in the archive, because an earlier host's others are."""
    left_out: list[str] = field(default_factory=list)
    """What is not a file, folder or link, and links that lead out: each in words."""


def archive(trees: Iterable[HostTree], target: Path) -> Archived:
    """Put the contents of the trees into one `.tar.gz`, which appears under its name when it is whole.

    Names are bytes; links into the tree are made relative. Raises OSError when the archive cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.new")
    found, archived = _merged(trees)
    try:
        with tarfile.open(
            draft, "w:gz", compresslevel=COMPRESSION_LEVEL, encoding="utf-8", errors="surrogateescape"
        ) as tar:
            for name in sorted(found):
                _add(tar, name, found[name])
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)  # of an archive that could not be finished
    return archived


class _Entry(NamedTuple):
    """A file, a folder or a link of a tree."""

    path: Path
    kind: int
    """As `stat.S_IFMT` has it."""
    target: str = ""
    """Of a link, as it means the same wherever the tree is put."""


def _merged(trees: Iterable[HostTree]) -> tuple[dict[str, _Entry], Archived]:
    chosen: dict[str, _Entry] = {}
    clashes: dict[str, list[str]] = {}
    left_out: list[str] = []
    for tree in trees:
        not_chosen: set[str] = set()
        for name, entry in sorted(_entries(tree, left_out)):
            if posixpath.dirname(name) in not_chosen:
                not_chosen.add(name)
            elif not _is_same(chosen.setdefault(name, entry), entry):
                not_chosen.add(name)
                clashes.setdefault(tree.host, []).append(name)
    return chosen, Archived(clashes, left_out)


def _entries(tree: HostTree, left_out: list[str]) -> Iterator[tuple[str, _Entry]]:
    waiting = [""] if tree.path.is_dir() else []
    if tree.path.exists() and not waiting:
        left_out.append(f"{tree.path.name!r} of {tree.host}, which is a file instead of a folder")
    while waiting:
        above = waiting.pop()
        for path in (tree.path / above).iterdir():
            name = posixpath.join(above, path.name)
            if len(os.fsencode(path)) >= _PATH_MAX:
                left_out.append(f"{name[:_WIDTH]!r}… of {tree.host}, which is too long for a path")
                continue
            kind = stat.S_IFMT(path.lstat().st_mode)
            target = _target(tree, name, path) if kind == stat.S_IFLNK else ""
            if target is None:
                left_out.append(f"{name!r} of {tree.host}, a link to {str(path.readlink())!r}, outside the folder")
            elif kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                left_out.append(f"{name!r} of {tree.host}, a device, a FIFO or a socket")
            else:
                waiting += [name] if kind == stat.S_IFDIR else []
                yield name, _Entry(path, kind, target)


def _target(tree: HostTree, name: str, path: Path) -> str | None:
    """What a link says, relative to its folder; None where that is outside the tree."""
    target, above = str(path.readlink()), posixpath.dirname(name)
    for root in (tree.named, str(tree.path), os.path.realpath(tree.path)):
        if target == root or target.startswith(f"{root}/"):
            target = posixpath.relpath(target, posixpath.join(root, above))
    inside = posixpath.normpath(posixpath.join(above, target))
    return None if inside.startswith(("/", "../")) or inside == ".." else target


def _is_same(one: _Entry, other: _Entry) -> bool:
    if one.path == other.path:
        return True
    if (one.kind, one.target) != (other.kind, other.target):
        return False
    return one.kind != stat.S_IFREG or filecmp.cmp(one.path, other.path, shallow=False)


def _add(tar: tarfile.TarFile, name: str, entry: _Entry) -> None:
    # Whatever encoding this machine has for names, the archive's is UTF-8.
    member = tar.gettarinfo(str(entry.path), os.fsencode(name).decode("utf-8", "surrogateescape"))
    if member.isreg():
        with entry.path.open("rb") as content:
            tar.addfile(member, content)
        return
    member.linkname = entry.target or member.linkname
    tar.addfile(member)


def _tree(host: HostPlan, folder: JobFolder, name: str) -> HostTree:
    bases = (folder.host(host.name), folder.hosts / host.base_dir)
    path, named = (getattr(Layout(str(base)), _FOLDERS[name]) for base in bases)
    return HostTree(host.name, Path(path), named)


def _about_clashes(name: str, clashes: Mapping[str, Collection[str]]) -> str:
    names = sorted({repr(each) for found in clashes.values() for each in found})
    what = f"hosts left different files under one name ({some(names)}), and {name} has the first host's"
    return f"{what}; all that {some(list(clashes))} left is also in hosts/<host>/{name}"
