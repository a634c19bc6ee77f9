import json
from dataclasses import replace

import pytest
from estimator_container.agents.checkpoints.format import (
    NOTHING,
    PLAIN,
    Claim,
    Damaged,
    File,
    Manifest,
    Name,
    UnknownFormat,
    _canonical,
    _checksum,
    attempt_of,
    claim_key,
    newest_first,
)
from hypothesis import given
from hypothesis import strategies as st

names = st.builds(Name, st.integers(0, 10**7), st.integers(0, 10**9))
targets = st.text(min_size=1, max_size=8).filter(lambda target: "\0" not in target)
parts = st.text(min_size=1, max_size=8).filter(lambda part: part not in (".", "..") and not set("/\0") & set(part))
odd_parts = st.one_of(parts, st.just("\udcff"), st.just(" \n"), st.just("..."))
files = st.builds(
    File,
    path=st.lists(odd_parts, min_size=1, max_size=3).map("/".join),
    size=st.integers(0, 2**60),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    mode=st.integers(0, 0o7777),
    mtime_ns=st.integers(0, 2**62),
    object=st.just(".estimator/data/000001/00000001"),
    offset=st.integers(0, 2**23),
    shared=st.integers(0, 2**23),
)


@st.composite
def manifests(draw):
    """Files, folders and links of distinct names, with no path below a link or a file."""
    found = draw(st.lists(files, max_size=4, unique_by=lambda file: file.path))
    found = [file for file in found if not any(each.path.startswith(f"{file.path}/") for each in found)]
    taken = {file.path for file in found}
    folders = [each for each in draw(st.lists(parts, max_size=3, unique=True)) if each not in taken]
    above = {path.split("/")[0] for path in (*taken, *folders)}
    links = [(each, draw(targets)) for each in draw(st.lists(parts, max_size=2, unique=True))]
    links = [link for link in links if link[0] not in above]
    modes = {folder: draw(st.integers(0, 0o7777)) for folder in folders}
    return Manifest(draw(names), draw(st.text(max_size=8)), 1.5, tuple(found), tuple(folders), tuple(links), modes)


@given(manifests())
def test_a_manifest_comes_back_as_it_was(manifest):
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


@given(manifests(), names)
def test_the_same_bytes_under_another_name_are_the_same_content(manifest, name):
    again = replace(manifest, name=name, files=tuple(replace(file, mtime_ns=1) for file in manifest.files))
    assert again.content == manifest.content
    other = replace(manifest, links=(*manifest.links, ("another link", "model")))
    assert other.content != manifest.content


@given(names)
def test_a_name_comes_back_as_it_was(name):
    assert Name.parse(str(name)) == name
    assert Name.of_key(name.key) == name


@given(names, names)
def test_the_later_snapshot_has_the_later_key(one, other):
    small = replace(one, attempt=one.attempt % 10**6, sequence=one.sequence % 10**8)
    great = replace(other, attempt=other.attempt % 10**6, sequence=other.sequence % 10**8)
    assert (small < great) == (small.key < great.key)


@pytest.mark.parametrize(
    "key",
    [
        "x",
        "000001-00000001",
        "1-1.json",
        "000001-00000001",
        "000001-00000001.json.bak",
        "٠٠٠٠٠١-00000001.json",
        "a.json",
    ],
)
def test_what_is_not_the_key_of_a_snapshot_is_refused(key):
    with pytest.raises(Damaged):
        Name.of_key(f".estimator/snapshots/{key}")


@pytest.mark.parametrize("key", ["x", "1.json", "000001", "000001.json.bak"])
def test_what_is_not_the_key_of_a_claim_is_refused(key):
    assert attempt_of(claim_key(1)) == 1
    with pytest.raises(Damaged):
        attempt_of(f".estimator/attempts/{key}")


WHOLE = Manifest(
    Name(3, 17),
    "a job",
    1763757600.25,
    (File("é/\udcff", 3, "0" * 64, 0o644, 12, ".estimator/data/000003/00000001"),),
    ("é",),
    (("latest", "é"),),
)


@given(st.data())
def test_any_damage_of_a_byte_is_seen(data):
    whole = WHOLE.to_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    with pytest.raises(Damaged):
        Manifest.from_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])


@given(st.integers(0, len(WHOLE.to_bytes()) - 1), st.binary(max_size=3))
def test_what_is_cut_off_is_seen(length, tail):
    cut = WHOLE.to_bytes()[:length] + tail
    if cut != WHOLE.to_bytes():
        with pytest.raises(Damaged):
            Manifest.from_bytes(cut)


@given(st.one_of(st.binary(max_size=64), st.sampled_from([b"[]", b"5", b"{}", b'{"sha256":1}', b"[" * 200_000])))
def test_anything_else_is_no_manifest_and_no_claim(data):
    for kind in (Manifest, Claim):
        with pytest.raises(Damaged):
            kind.from_bytes(data)


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/etc/passwd", "../x", "a/../../x", "a/..", "a//b", "a/", "./a", "a\0b"]
)
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_path_that_leads_out_is_refused(path, kind):
    changes = {
        "file": {"files": (replace(WHOLE.files[0], path=path),)},
        "folder": {"folders": (path,)},
        "link": {"links": ((path, "target"),)},
    }
    with pytest.raises(Damaged, match="out of the folder"):
        Manifest.from_bytes(replace(WHOLE, **changes[kind]).to_bytes())


def test_a_path_through_a_link_is_refused():
    with pytest.raises(Damaged, match="through a link"):
        Manifest.from_bytes(replace(WHOLE, links=(("a", "/etc"), ("a/b", "c"))).to_bytes())
    with pytest.raises(Damaged, match="twice"):
        Manifest.from_bytes(replace(WHOLE, links=(("é", "/etc"),), files=()).to_bytes())


def test_a_path_through_a_file_is_refused():
    with pytest.raises(Damaged, match=r"through a link or a file"):
        Manifest.from_bytes(replace(WHOLE, folders=("é/\udcff/below",)).to_bytes())


@pytest.mark.parametrize("target", ["", "a\0b", "\ud800"])
def test_a_link_that_no_system_could_make_is_refused(target):
    with pytest.raises(Damaged):
        Manifest.from_bytes(replace(WHOLE, links=(("latest", target),)).to_bytes())


@pytest.mark.parametrize(
    "changes",
    [{"mode": "0644"}, {"mode": -1}, {"size": 1.5}, {"mtime_ns": 1 << 70}, {"offset": None}, {"shared": True}],
)
def test_what_is_no_number_is_refused_before_anything_is_made_of_it(changes):
    with pytest.raises(Damaged):
        Manifest.from_bytes(replace(WHOLE, files=(replace(WHOLE.files[0], **changes),)).to_bytes())


@pytest.mark.parametrize("modes", [{"é": "0700"}, {"é": -1}, {"other": 0o700}, {"../é": 0o700}, ["é"]])
def test_the_modes_are_those_of_its_folders(modes):
    document = {**json.loads(WHOLE.to_bytes()), "folder_modes": modes}
    del document["sha256"]
    with pytest.raises(Damaged):
        Manifest.from_bytes(_canonical({**document, "sha256": _checksum(document)}))


def test_a_manifest_without_modes_of_folders_is_that_of_an_older_toolkit():
    document = json.loads(WHOLE.to_bytes())
    del document["sha256"], document["folder_modes"]
    assert Manifest.from_bytes(_canonical({**document, "sha256": _checksum(document)})) == WHOLE


def test_a_manifest_of_the_first_format_has_an_object_for_each_file():
    document = json.loads(WHOLE.to_bytes())
    del document["sha256"]
    document["format"] = 1
    for file in document["files"]:
        del file["offset"], file["shared"]
    assert Manifest.from_bytes(_canonical({**document, "sha256": _checksum(document)})) == WHOLE


def test_a_manifest_of_a_newer_format_is_whole_and_unknown():
    document = json.loads(WHOLE.to_bytes())
    del document["sha256"]
    document["format"] = 3
    with pytest.raises(UnknownFormat, match="format 3"):
        Manifest.from_bytes(_canonical({**document, "sha256": _checksum(document)}))


@given(
    st.builds(
        Claim,
        st.integers(1, 999),
        st.text(),
        st.floats(0, 2e9),
        st.sampled_from([None, PLAIN, NOTHING, "000001-00000002"]),
    )
)
def test_a_claim_comes_back_as_it_was(claim):
    assert Claim.from_bytes(claim.to_bytes()) == claim


@pytest.mark.parametrize("base", ["", "1", "x", "000001-1"])
def test_a_claim_with_a_base_that_names_nothing_is_damaged(base):
    with pytest.raises(Damaged):
        Claim.from_bytes(Claim(1, "job", 0.0, base).to_bytes())


@st.composite
def histories(draw):
    """Attempts in the order that they came, each with a base and then snapshots of its own, while the earlier ones
    may go on publishing. Returns claims, names, and the names in the order that a plain model gives."""
    attempts = draw(st.integers(1, 4))
    allowed: list[Name] = []  # oldest first
    claims: list[Claim] = []
    everything: list[Name] = []
    sequences = dict.fromkeys(range(1, attempts + 1), 0)
    for attempt in range(1, attempts + 1):
        chosen = draw(st.sampled_from(["newest", "older", "none yet"])) if attempt > 1 else "newest"
        base: str | None = NOTHING
        if allowed:
            if chosen == "older":  # the newer ones were damaged
                allowed = allowed[: draw(st.integers(1, len(allowed)))]
            base = str(allowed[-1])
        if chosen == "none yet":
            base = None
        claims.append(Claim(attempt, "job", 0.0, base))
        for _ in range(draw(st.integers(0, 4))):
            writer = draw(st.sampled_from([claim.attempt for claim in claims if claim.base is not None]))
            sequences[writer] += 1
            name = Name(writer, sequences[writer])
            everything.append(name)
            stale = any(claim.attempt > writer and claim.base is not None for claim in claims)
            if not stale:
                allowed.append(name)
    return claims, everything, sorted(allowed, reverse=True)


@given(histories(), st.randoms())
def test_the_newest_come_first_and_what_a_stale_writer_published_never(history, random):
    claims, names, expected = history
    random.shuffle(names)
    random.shuffle(claims)
    assert newest_first(claims, names) == expected


def test_a_stale_writer_never_comes_before_the_snapshot_that_was_chosen():
    claims = [Claim(1, "job", 0.0, NOTHING), Claim(2, "job", 0.0, "000001-00000002")]
    names = [Name(1, number) for number in (1, 2, 3)]
    assert newest_first(claims, names) == [Name(1, 2), Name(1, 1)]
    assert newest_first(claims, [*names, Name(2, 1)])[0] == Name(2, 1)
    assert newest_first([*claims, Claim(3, "job", 0.0, None)], names)[0] == Name(1, 2)


@pytest.mark.parametrize("base", [PLAIN, NOTHING])
def test_what_comes_late_is_no_snapshot_for_one_that_began_without(base):
    assert newest_first([Claim(2, "job", 0.0, base)], [Name(1, 1), Name(2, 1)]) == [Name(2, 1)]
