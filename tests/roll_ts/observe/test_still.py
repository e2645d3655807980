"""The still picture: valid SVG, the journal's own times, nothing from elsewhere."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from roll_ts.observe.still import make_still
from tests.roll_ts.observe.handmade import finished_run

LEFT, WIDTH, END = 64, 780, 12.0


def lanes(text: str) -> dict[float, list[tuple[str, float, float]]]:
    """By lane (its y): kind, from and to in seconds."""
    found: dict[float, list[tuple[str, float, float]]] = {}
    for rect in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect"):
        kind, x, width = rect.get("class", ""), float(rect.get("x", 0)), float(rect.get("width", 0))
        if kind != "lane" and rect.get("height") == "16":
            begin = (x - LEFT) / WIDTH * END
            found.setdefault(float(rect.get("y", 0)), []).append((kind, begin, begin + width / WIDTH * END))
    return found


def test_each_device_shows_what_it_did_and_when() -> None:
    first, second = lanes(make_still([finished_run()], "A run")).values()
    trained = [(begin, end) for kind, begin, end in first if kind == "training"]
    assert trained == [(pytest.approx(6, abs=0.05), pytest.approx(9, abs=0.05))]
    assert first[0][1:] == (pytest.approx(1, abs=0.05), pytest.approx(4, abs=0.05)), "two requests, then the drain"
    assert not [kind for kind, _, _ in second if kind == "training"]


def test_runs_lie_one_below_the_other_on_one_axis() -> None:
    text = make_still([finished_run(), finished_run()], "Two")
    assert len(lanes(text)) == 4
    assert text.count("12 s") == 1, "one axis"


def test_a_name_from_a_journal_cannot_break_the_picture() -> None:
    run = finished_run()
    run = replace(run, header=replace(run.header, notes={"name": "<script>&", "device": "G<PU"}))
    text = make_still([run], "</title><script>")
    assert "<script" not in text
    assert len(lanes(text)) == 2


def test_the_picture_asks_nothing_of_the_network() -> None:
    text = make_still([finished_run()], "A run")
    assert text.count("http") == 1, "the name of the SVG language"
    assert "url(" not in text


def test_without_a_journal_there_is_no_picture() -> None:
    with pytest.raises(ValueError, match="journals must not be empty"):
        make_still([], "Nothing")
