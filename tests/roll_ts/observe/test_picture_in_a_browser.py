"""The picture in a real browser: what a reader does with the mouse says the right thing and raises nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from roll_ts.observe.picture import make_picture
from tests.roll_ts.observe.handmade import finished_run

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")

PROBE = """
<script>
const said = {errors: [], tips: {}};
addEventListener("error", event => said.errors.push(event.message));
console.error = (...words) => said.errors.push(words.join(" "));
function point(kind, chart, seconds, lane) {
  const panel = data.panels[0], box = chart.getBoundingClientRect();
  const x = box.left + drawn[0].x(seconds), y = box.top + lane * (LANE + GAP) + LANE / 2;
  chart.dispatchEvent(new PointerEvent(kind, {clientX: x, clientY: y, pointerId: 1, bubbles: true}));
}
SVGElement.prototype.setPointerCapture = () => {};
setTimeout(() => {
  const chart = document.querySelector("svg.chart");
  for (const [seconds, lane] of [[2, 0], [7.5, 0], [6, 1], [2, 9]]) {
    point("pointermove", chart, seconds, lane);
    said.tips[`${seconds}/${lane}`] = document.getElementById("tip").innerText;
  }
  point("pointerdown", chart, 5, 0); point("pointermove", chart, 8, 0); point("pointerup", chart, 8, 0);
  said.zoomed = view.map(t => Math.round(t * 10) / 10);
  point("pointermove", document.querySelector("svg.chart"), 7.5, 0);
  said.tips.zoomed = document.getElementById("tip").innerText;
  document.querySelector("svg.chart").dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
  said.whole = view;
  said.wide = document.documentElement.scrollWidth <= innerWidth;
  const out = document.createElement("pre");
  out.id = "said"; out.textContent = JSON.stringify(said);
  document.body.appendChild(out);
}, 200);
</script>
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("browser")
    page = folder / "page.html"
    page.write_text(make_picture([finished_run()]).replace("</body>", PROBE + "</body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800", "--virtual-time-budget=3000"]
    command = ["chromium", *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    return answer


def test_nothing_that_a_reader_does_raises_an_error(said: dict[str, Any]) -> None:
    assert said["errors"] == []


def test_the_lane_under_the_mouse_names_its_device_and_what_it_does(said: dict[str, Any]) -> None:
    assert "device 0" in said["tips"]["2/0"] and "rollout" in said["tips"]["2/0"]
    assert re.search(r"requests in flight\s+2\b", said["tips"]["2/0"]), said["tips"]["2/0"]
    assert "training" in said["tips"]["7.5/0"] and "0 → 1" in said["tips"]["7.5/0"]
    assert "device 1" in said["tips"]["6/1"] and "rank 1" in said["tips"]["6/1"]


def test_dragging_zooms_and_a_double_click_shows_the_whole_run(said: dict[str, Any]) -> None:
    assert said["zoomed"] == [5.0, 8.0]
    assert "training" in said["tips"]["zoomed"]
    assert said["whole"] == [0, 12]


def test_the_page_fits_a_window_of_1280_pixels(said: dict[str, Any]) -> None:
    assert said["wide"] is True
