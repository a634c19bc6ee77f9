"""The picture of a diagnosis: that its bars are as long as they should be, and that names do not get out of it."""

from xml.etree import ElementTree

import pytest

from estimator_sdk.job.diagnosis import picture
from estimator_sdk.job.diagnosis.shares import RankShares

NAMESPACE = "{http://www.w3.org/2000/svg}"


def bars(image, colour):
    rects = ElementTree.fromstring(image).iter(f"{NAMESPACE}rect")
    return [float(rect.get("width")) for rect in rects if rect.get("fill") == colour and rect.get("height") != "10"]


def test_a_bar_is_as_long_as_the_step_and_its_pieces_as_their_shares():
    ranks = [
        RankShares("algo-1", 0, 100, 10.0, 0.25, None, None, 0.0),
        RankShares("algo-1", 1, 100, 20.0, 0.5, None, None, 0.0),
    ]
    image = picture.of_ranks("job", ranks)
    whole = picture.WIDTH - picture.LEFT - picture.RIGHT
    shown = {kind: bars(image, colour) for kind, colour in picture.COLOURS.items()}
    assert shown["input"] == [pytest.approx(whole / 8, abs=0.1), pytest.approx(whole / 2, abs=0.1)]
    assert shown["computing"] == [pytest.approx(whole * 3 / 8, abs=0.1), pytest.approx(whole / 2, abs=0.1)]
    assert shown["communication"] == []


def test_rates_are_bars_to_their_median_with_what_lies_around():
    image = picture.of_rates("rates", {"as it is": (5.0, 4.0, 6.0), "replayed": (10.0, 10.0, 10.0)})
    whole = picture.WIDTH - picture.LEFT - picture.RIGHT
    assert bars(image, picture.COLOURS["computing"]) == [pytest.approx(0.4 * whole), pytest.approx(whole)]


def test_on_a_dark_page_it_is_dark_and_what_knows_no_styles_shows_it_on_white():
    image = ElementTree.fromstring(picture.of_ranks("job", []))
    paper = next(rect for rect in image.iter(f"{NAMESPACE}rect") if rect.get("class") == "paper")
    assert paper.get("fill") == "white"
    (style,) = image.iter(f"{NAMESPACE}style")
    assert "@media (prefers-color-scheme: dark)" in style.text
    # Inline in a notebook its rules hold for the whole page: they may mean nothing else there.
    assert all(rule.strip().startswith(".estimator-picture") for rule in style.text.partition("{")[2].split("}")[:2])


def test_words_are_escaped():
    image = picture.of_ranks("<script>&", [RankShares("<b>", None, 9, 1.0, None, None, None, None)])
    texts = [text.text for text in ElementTree.fromstring(image).iter(f"{NAMESPACE}text")]
    assert {"<script>&", "script on <b>"} <= set(texts)
