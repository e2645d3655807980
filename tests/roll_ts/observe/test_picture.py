"""The picture: one file, no network, the journal's own figures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roll_ts.observe.picture import make_picture, thin, write_picture
from tests.roll_ts.observe.handmade import finished_run


def data_of(page: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(match.group(1))
    return found


def test_the_page_asks_nothing_of_the_network() -> None:
    page = make_picture([finished_run()])
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}, "only the name of the SVG language may look like an address"
    for word in ("src=", "<link", "@import", "url(http", "fetch(", "XMLHttpRequest", "import("):
        assert word not in page


def test_lanes_carry_the_activities_of_the_devices() -> None:
    (panel,) = data_of(make_picture([finished_run()]))["panels"]
    lanes = panel["lanes"]
    assert [lane["role"] for lane in lanes] == ["rollout + training", "rollout"]
    activities = ["busy", "training", "switching", "idle"]
    assert [activities[kind] for _, _, kind in lanes[0]["spans"]] == [
        "idle", "busy", "switching", "training", "switching", "idle",
    ]  # fmt: skip
    assert panel["moves"] == [[5.0, 0, 1, 1]]
    assert panel["trainings"] == [[6.0, 9.0, 0, 2, 0]]
    assert panel["open"][-1] == [11.0, 0]
    assert sum(panel["shares"].values()) == pytest.approx(1.0)


def test_text_of_a_journal_cannot_leave_the_script() -> None:
    journal = finished_run()
    evil = {"name": "</script><b>x</b>", "device": "<core>"}
    page = make_picture([replace(journal, header=replace(journal.header, notes=evil))], title="a < b & c")
    assert page.count("</script>") == 2
    assert data_of(page)["panels"][0]["name"] == "</script><b>x</b>"
    assert "<title>a &lt; b &amp; c</title>" in page


def test_several_journals_become_panels_in_their_order() -> None:
    journal = finished_run()
    other = replace(journal, header=replace(journal.header, policy="colocated"))
    assert [p["name"] for p in data_of(make_picture([other, journal]))["panels"]] == ["colocated", "time-sharing"]


def test_no_journal_is_refused() -> None:
    with pytest.raises(ValueError, match="journals must not be empty"):
        make_picture([])


def test_the_file_is_written_whole(tmp_path: Path) -> None:
    write_picture([finished_run()], tmp_path / "picture.html")
    assert (tmp_path / "picture.html").read_text(encoding="utf-8") == make_picture([finished_run()])
    assert [path.name for path in tmp_path.iterdir()] == ["picture.html"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here to parse the page's script")
def test_the_script_is_valid(tmp_path: Path) -> None:
    page = make_picture([finished_run()])
    script = tmp_path / "page.js"
    script.write_text(page.rsplit("<script>", 1)[1].split("</script>")[0])
    done = subprocess.run(["node", "--check", str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


steps = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 20)), min_size=1, max_size=200)


@given(steps, st.integers(1, 60))
@settings(deadline=None, derandomize=True)
def test_thinning_keeps_the_area_under_the_curve(raw: list[tuple[int, int]], most: int) -> None:
    points = sorted((t / 10, value) for t, value in raw)
    end = points[-1][0] + 1.0

    def area(curve: list[list[float]] | list[tuple[float, int]]) -> float:
        ends = [point[0] for point in curve[1:]] + [end]
        return sum(point[1] * (later - point[0]) for point, later in zip(curve, ends, strict=True))

    thinned = thin(points, end, most)
    assert len(thinned) <= most or len(thinned) == len(points)
    # values are rounded to a hundredth
    assert area(thinned) == pytest.approx(area(points), abs=0.01 * (end - points[0][0]))
