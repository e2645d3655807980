"""The page that `picture` fills in: style and script, nothing from the network. `$TITLE`, `$LEAD` and `$DATA`
are replaced.

The script draws plain SVG from the data and draws it again for each zoom; the colours follow the reader's dark
or light.
"""

PAGE = r"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$TITLE</title>
<style>
:root {
  --paper: #ffffff; --ink: #1c2430; --soft: #66707f; --faint: #dfe4ec; --lane: #f4f6fa; --card: #ffffff;
  --busy: #2b6cb8; --busy-soft: #c9def5; --training: #d9622b; --on-training: #ffffff; --switching: #a58a18;
  --switching-soft: #f3e9bd; --gap: #b9c1cd; --move: #7b3fb5; --death: #c22f3d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #10151d; --ink: #e6eaf0; --soft: #97a2b2; --faint: #2a3342; --lane: #19212d; --card: #141b25;
    --busy: #6aa9ee; --busy-soft: #22426a; --training: #e57a43; --on-training: #1a0f08; --switching: #d3b63c;
    --switching-soft: #463d18; --gap: #4a566a; --move: #bd93ef; --death: #ff7681;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1500px; margin: 0 auto; padding: 28px 28px 60px; }
h1 { font-size: 24px; font-weight: 650; letter-spacing: -.01em; margin: 0 0 4px; }
.lead { color: var(--soft); margin: 0 0 18px; max-width: 90ch; }
.lead:empty { display: none; }
.bar { position: sticky; top: 0; z-index: 2; background: var(--paper); padding: 8px 0 0;
  display: flex; flex-wrap: wrap; gap: 6px 20px; align-items: center; }
.key { display: inline-flex; align-items: center; gap: 7px; color: var(--soft); font-size: 13px; }
.key svg { display: block; }
.bar .zoom { margin-left: auto; color: var(--soft); font-size: 12.5px; }
button { font: inherit; font-size: 12.5px; color: var(--ink); background: var(--lane); border: 1px solid var(--faint);
  border-radius: 6px; padding: 2px 10px; cursor: pointer; }
button[hidden] { display: none; }
#axis { display: block; width: 100%; flex-basis: 100%; }
section { margin: 18px 0 26px; }
.head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 14px; margin-bottom: 6px; }
h2 { font-size: 17px; font-weight: 650; margin: 0; }
.about { color: var(--soft); font-size: 13px; }
.figures { display: flex; flex-wrap: wrap; gap: 2px 22px; margin: 2px 0 8px; font-size: 13px; color: var(--soft); }
.figures b { color: var(--ink); font-weight: 600; font-variant-numeric: tabular-nums; }
.share { display: flex; height: 8px; border-radius: 4px; overflow: hidden; margin: 0 0 10px; background: var(--lane); }
.share i { display: block; height: 100%; }
.bad { color: var(--death); font-weight: 600; }
svg { user-select: none; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
svg .soft { fill: var(--soft); font-size: 11px; }
svg .num { font-variant-numeric: tabular-nums; }
.chart { display: block; width: 100%; cursor: crosshair; }
#tip { position: fixed; z-index: 5; pointer-events: none; background: var(--card); color: var(--ink);
  border: 1px solid var(--faint); border-radius: 8px; box-shadow: 0 6px 24px rgb(0 0 0 / .18); padding: 8px 11px;
  font-size: 12.5px; line-height: 1.5; max-width: 320px; opacity: 0; transition: opacity .08s; }
#tip b { font-weight: 620; }
#tip .soft { color: var(--soft); }
@media print { .bar { position: static; } .zoom, button { display: none; } }
</style>
</head>
<body>
<main>
<h1>$TITLE</h1>
<p class="lead">$LEAD</p>
<div class="bar" id="bar"></div>
<div id="panels">
<noscript>This picture is drawn by a script in this file; nothing is loaded from elsewhere.</noscript>
</div>
</main>
<div id="tip" role="status"></div>
<script type="application/json" id="data">$DATA</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const NS = "http://www.w3.org/2000/svg", GUTTER = 138, RIGHT = 14, LANE = 30, GAP = 7, CURVE = 44;
const [BUSY, TRAINING, SWITCHING, IDLE] = [0, 1, 2, 3];
const from = Math.min(...data.panels.map(p => p.start)), to = Math.max(...data.panels.map(p => p.end));
let view = [from, to];
const tip = document.getElementById("tip"), drawn = [];
const most = Math.max(1, ...data.panels.flatMap(p => p.lanes.flatMap(l => l.load.map(v => v[1]))));
const ceiling = Math.max(1, ...data.panels.flatMap(p => p.open.map(v => v[1])));

function make(name, attributes, parent, text) {
  const node = document.createElementNS(NS, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}
function el(name, className, parent, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}
const seconds = t => t >= 100 ? t.toFixed(0) : t >= 10 ? t.toFixed(1) : t.toFixed(2);
function clock(t, step) {
  const digits = step < .1 ? 2 : step < 1 ? 1 : 0, unit = 10 ** digits, whole = Math.round(Math.max(0, t) * unit);
  if (to - from < 180) return (whole / unit).toFixed(digits) + " s";
  const s = whole / unit, h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
  const two = n => String(n).padStart(2, "0");
  const rest = (s % 60).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  return (h ? h + ":" + two(m) : m) + ":" + rest;
}
function ticks(width) {
  const span = view[1] - view[0], wanted = span / Math.max(2, width / 110);
  const nice = [.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200];
  const step = nice.find(n => n >= wanted) || Math.ceil(wanted / 86400) * 86400, marks = [];
  for (let k = Math.ceil(view[0] / step); k * step <= view[1] + 1e-9; k++) marks.push(k * step);
  return [step, marks];
}
function cut(series, fromT, toT) {
  let low = 0, high = series.length;
  while (low < high) { const mid = (low + high) >> 1; if (series[mid][0] <= fromT) low = mid + 1; else high = mid; }
  const begin = Math.max(0, low - 1);
  let end = begin;
  while (end < series.length && series[end][0] <= toT) end++;
  return series.slice(begin, end);
}
function valueAt(series, t) {
  const here = cut(series, t, t);
  return here.length ? here[here.length - 1][1] : 0;
}
const spanAt = (spans, t) => spans.find(s => s[0] <= t && t < s[1]);

function stepPath(series, end, x, y, base) {
  let d = "", last = null;
  for (const [t, value] of series) {
    const px = Math.max(x(t), x(view[0])).toFixed(1), py = y(value).toFixed(1);
    d += last === null ? `M${px},${base}V${py}` : `H${px}V${py}`;
    last = py;
  }
  return last === null ? "" : d + `H${Math.min(x(end), x(view[1])).toFixed(1)}V${base}Z`;
}

function hatch(defs, id) {
  const pattern = make("pattern", {id, width: 6, height: 6, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)"}, defs);
  make("rect", {width: 6, height: 6, fill: "var(--switching-soft)"}, pattern);
  make("rect", {width: 2.2, height: 6, fill: "var(--switching)"}, pattern);
}

function drawPanel(panel, index, svg) {
  const width = svg.parentNode.clientWidth, inner = width - GUTTER - RIGHT;
  const x = t => GUTTER + (t - view[0]) / (view[1] - view[0]) * inner;
  const laneY = n => n * (LANE + GAP), lanes = panel.lanes.length;
  const height = laneY(lanes) + CURVE + 10;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  const defs = make("defs", {}, svg), hatchId = "hatch" + index;
  hatch(defs, hatchId);
  make("rect", {x: GUTTER, y: -4, width: inner, height: height + 8},
    make("clipPath", {id: "clip" + index}, defs));
  const [, marks] = ticks(inner);
  for (const t of marks)
    make("line", {x1: x(t), x2: x(t), y1: 0, y2: height, stroke: "var(--faint)", "stroke-width": 1}, svg);
  const body = make("g", {"clip-path": `url(#clip${index})`}, svg);
  panel.lanes.forEach((lane, n) => {
    const y = laneY(n), mid = y + LANE / 2;
    make("text", {x: 0, y: mid - 1}, svg, lane.name);
    make("text", {x: 0, y: mid + 12, class: "soft"}, svg, lane.role);
    make("rect", {x: x(panel.start), y, width: Math.max(0, x(panel.end) - x(panel.start)), height: LANE, rx: 3,
      fill: "var(--lane)"}, body);
    make("line", {x1: x(panel.start), x2: x(panel.end), y1: mid, y2: mid, stroke: "var(--gap)", "stroke-width": 1,
      "stroke-dasharray": "1 5"}, body);
    for (const [start, end, kind] of lane.spans) {
      if (end < view[0] || start > view[1] || kind === IDLE) continue;
      const left = x(start), wide = Math.max(x(end) - left, kind === BUSY ? .3 : .8);
      const fill = kind === BUSY ? "var(--busy-soft)" : kind === TRAINING ? "var(--training)" : `url(#${hatchId})`;
      make("rect", {x: left, y, width: wide, height: LANE, fill, rx: kind === BUSY ? 0 : Math.min(3, wide / 2)}, body);
    }
    if (lane.load.length) {
      const base = y + LANE, shape = cut(lane.load, view[0], view[1]);
      const d = stepPath(shape, panel.end, x, v => base - v / most * (LANE - 2), base);
      if (d) make("path", {d, fill: "var(--busy)", "fill-opacity": .92}, body);
    }
  });
  for (const [start, end, version] of panel.trainings) {
    const left = Math.max(x(start), GUTTER), right = Math.min(x(end), width - RIGHT), wide = right - left;
    panel.lanes.forEach((lane, n) => {
      if (!lane.role.includes("training") || wide < 24) return;
      const name = wide > 84 ? `train ${version} → ${version + 1}` : `${version}→${version + 1}`;
      make("text", {x: (left + right) / 2, y: laneY(n) + LANE / 2 + 4, "text-anchor": "middle", class: "num",
        style: "fill: var(--on-training); font-size: 11px; font-weight: 600"}, body, name);
    });
  }
  const laneOf = rank => panel.lanes.findIndex(l => l.rank === rank && l.first);
  for (const [t, before, after, count] of panel.moves) {
    if (t < view[0] || t > view[1]) continue;
    const a = laneY(laneOf(before)) + LANE / 2, b = laneY(laneOf(after)) + LANE / 2, px = x(t);
    make("path", {d: `M${px},${a}C${px - 13},${a} ${px - 13},${b} ${px - 2},${b}`, fill: "none",
      stroke: "var(--move)", "stroke-opacity": .8, "stroke-width": Math.min(3, .9 + count * .25)}, body);
    make("circle", {cx: px, cy: b, r: 2, fill: "var(--move)"}, body);
  }
  for (const [t, rank] of panel.deaths) {
    const y = laneY(laneOf(rank)), px = x(t);
    make("path", {d: `M${px - 5},${y + 4}l10,10m0,-10l-10,10`, stroke: "var(--death)", "stroke-width": 2.4}, body);
  }
  const base = laneY(lanes) + CURVE;
  make("text", {x: 0, y: base - CURVE / 2 + 2, class: "soft"}, svg, "unfinished");
  make("text", {x: 0, y: base - CURVE / 2 + 15, class: "soft"}, svg, `trajectories (≤ ${Math.round(ceiling)})`);
  const d = stepPath(cut(panel.open, view[0], view[1]), panel.end, x, v => base - v / ceiling * (CURVE - 8), base);
  if (d) make("path", {d, fill: "var(--gap)", "fill-opacity": .35, stroke: "var(--soft)", "stroke-width": 1}, body);
  for (const [start, end] of panel.syncs)
    make("line", {x1: x(end), x2: x(end), y1: base - CURVE + 6, y2: base, stroke: "var(--switching)",
      "stroke-width": 1.4}, body);
  if (panel.end < to - (to - from) * .002 && panel.end <= view[1]) {
    const px = x(panel.end);
    make("line", {x1: px, x2: px, y1: 0, y2: base, stroke: "var(--ink)", "stroke-width": 1.4}, body);
    if (width - RIGHT - px > 90)
      make("text", {x: px + 8, y: laneY(lanes) / 2 + 1, style: "font-weight: 600"}, body,
        (panel.ok ? "done at " : "ended at ") + clock(panel.end, 1));
  }
  const hair = make("line", {y1: 0, y2: height, stroke: "var(--ink)", "stroke-width": 1, "stroke-opacity": .45,
    visibility: "hidden"}, svg);
  const box = make("rect", {y: 0, height, fill: "var(--busy)", "fill-opacity": .16, visibility: "hidden"}, svg);
  const time = px => view[0] + (px - GUTTER) / inner * (view[1] - view[0]);
  return {svg, panel, hair, box, x, inner, time};
}

function describe(item, t, y) {
  const lane = item.panel.lanes[Math.floor(y / (LANE + GAP))], lines = [];
  const add = (label, value) => lines.push([label, value]);
  if (lane && y % (LANE + GAP) <= LANE) {
    const span = spanAt(lane.spans, t), state = spanAt(lane.states, t);
    if (!span) return null;
    const names = ["rollout", "training", "switching", "idle"];
    add(lane.name, `${names[span[2]]}, ${seconds(span[1] - span[0])} s`);
    if (lane.rank !== null && state) add("rank " + lane.rank, state[2]);
    if (span[2] === BUSY) {
      // A long curve is thinned to means over equal pieces of time: a broken number is said to be one.
      const load = valueAt(lane.load, t);
      add("requests in flight", Number.isInteger(load) ? load : `${load.toFixed(1)} on average`);
    }
    const training = span[2] === TRAINING && item.panel.trainings.find(s => s[0] <= t && t < s[1]);
    if (training) {
      add("version", `${training[2]} → ${training[2] + 1}`);
      add("samples", `${training[3]}, oldest of version ${training[4]}`);
    }
    const near = m => Math.abs(item.x(m[0]) - item.x(t)) < 6;
    for (const move of item.panel.moves)
      if (near(move) && (move[1] === lane.rank || move[2] === lane.rank))
        add("migrated turns", `${move[3]}, rank ${move[1]} → ${move[2]}`);
    const death = item.panel.deaths.find(m => near(m) && m[1] === lane.rank);
    if (death) add("died", death[2]);
  } else if (t >= item.panel.start && t <= item.panel.end) {
    add("unfinished trajectories", Math.round(valueAt(item.panel.open, t)));
    const done = item.panel.syncs.filter(s => s[1] <= t).pop();
    if (done) add("weights on the ranks", "version " + done[2]);
  } else return null;
  return lines;
}

function hover(event, item) {
  const frame = item.svg.getBoundingClientRect(), px = event.clientX - frame.left, t = item.time(px);
  const inside = px >= GUTTER && px <= GUTTER + item.inner;
  for (const other of drawn) {
    other.hair.setAttribute("visibility", inside ? "visible" : "hidden");
    other.hair.setAttribute("x1", px); other.hair.setAttribute("x2", px);
  }
  const lines = inside ? describe(item, t, event.clientY - frame.top) : null;
  if (!lines) { tip.style.opacity = 0; return; }
  tip.replaceChildren();
  el("span", "soft", tip, clock(t, .1));
  for (const [label, value] of lines) {
    const line = el("div", "", tip);
    el("span", "soft", line, label + "  ");
    el("b", "", line, value);
  }
  const right = event.clientX + 18 + tip.offsetWidth > innerWidth;
  tip.style.left = (right ? event.clientX - tip.offsetWidth - 14 : event.clientX + 16) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
  tip.style.opacity = 1;
}
function leave() {
  tip.style.opacity = 0;
  for (const item of drawn) item.hair.setAttribute("visibility", "hidden");
}

function listen(svg, index) {
  let anchor = null;
  const at = event => event.clientX - svg.getBoundingClientRect().left;
  svg.addEventListener("pointermove", event => {
    hover(event, drawn[index]);
    if (anchor === null) return;
    for (const item of drawn) {
      item.box.setAttribute("visibility", "visible");
      item.box.setAttribute("x", Math.min(anchor, at(event)));
      item.box.setAttribute("width", Math.abs(at(event) - anchor));
    }
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointerdown", event => { anchor = at(event); svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointerup", event => {
    const end = at(event), begin = anchor;
    anchor = null;
    for (const item of drawn) item.box.setAttribute("visibility", "hidden");
    if (begin === null || Math.abs(end - begin) < 6) return;
    const cutTo = [begin, end].map(drawn[index].time).sort((p, q) => p - q);
    view = [Math.max(from, cutTo[0]), Math.min(to, cutTo[1])];
    draw();
  });
  svg.addEventListener("dblclick", () => { view = [from, to]; draw(); });
}

function legend(bar) {
  const samples = [
    [`rollout; full height: ${Math.round(most)} requests`, g => {
      make("rect", {width: 26, height: 14, fill: "var(--busy-soft)"}, g);
      make("path", {d: "M0,14V4H8V7H14V2H20V9H26V14Z", fill: "var(--busy)"}, g); }],
    ["training", g => make("rect", {width: 26, height: 14, rx: 3, fill: "var(--training)"}, g)],
    ["switching", g => { hatch(make("defs", {}, g), "hatchKey");
      make("rect", {width: 26, height: 14, rx: 3, fill: "url(#hatchKey)"}, g); }],
    ["idle", g => { make("rect", {width: 26, height: 14, rx: 3, fill: "var(--lane)"}, g);
      make("line", {x1: 0, x2: 26, y1: 7, y2: 7, stroke: "var(--gap)", "stroke-dasharray": "1 5"}, g); }],
    ["turn that migrated", g => { make("path", {d: "M20,2C6,2 6,12 16,12", fill: "none", stroke: "var(--move)",
      "stroke-width": 1.6}, g); make("circle", {cx: 17, cy: 12, r: 2, fill: "var(--move)"}, g); }],
    ["new weights on all ranks", g => make("line", {x1: 13, x2: 13, y1: 0, y2: 14, stroke: "var(--switching)",
      "stroke-width": 1.6}, g)],
  ];
  if (data.panels.some(p => p.deaths.length)) samples.push(["rank died", g => make("path",
    {d: "M8,2l10,10m0,-10l-10,10", stroke: "var(--death)", "stroke-width": 2.4}, g)]);
  for (const [name, paint] of samples) {
    const key = el("span", "key", bar);
    paint(make("svg", {width: 26, height: 14, "aria-hidden": "true"}, key));
    key.appendChild(document.createTextNode(name));
  }
}

function drawAxis(svg) {
  const width = svg.parentNode.clientWidth, inner = width - GUTTER - RIGHT;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} 24`);
  svg.setAttribute("height", 24);
  const x = t => GUTTER + (t - view[0]) / (view[1] - view[0]) * inner, [step, marks] = ticks(inner);
  make("line", {x1: GUTTER, x2: width - RIGHT, y1: 23, y2: 23, stroke: "var(--faint)"}, svg);
  for (const t of marks) {
    make("line", {x1: x(t), x2: x(t), y1: 18, y2: 23, stroke: "var(--soft)"}, svg);
    make("text", {x: x(t), y: 13, "text-anchor": "middle", class: "soft num"}, svg, clock(t, step));
  }
}

const axis = make("svg", {id: "axis", role: "presentation"});
const reset = el("button", "", null, "whole run");
reset.onclick = () => { view = [from, to]; draw(); };
function build() {
  const bar = document.getElementById("bar"), host = document.getElementById("panels");
  legend(bar);
  el("span", "zoom", bar, "drag to zoom, double-click for the whole run");
  bar.appendChild(reset);
  bar.appendChild(axis);
  host.replaceChildren();
  data.panels.forEach((panel, index) => {
    const section = el("section", "", host), head = el("div", "head", section);
    el("h2", "", head, panel.name);
    el("span", "about", head, panel.about);
    if (!panel.ok) el("span", "bad", head, panel.reason);
    const figures = el("div", "figures", section);
    for (const [label, value] of panel.figures) {
      const figure = el("span", "", figures);
      el("b", "", figure, value);
      figure.appendChild(document.createTextNode(" " + label));
    }
    const share = el("div", "share", section), parts = [];
    for (const name of data.activities) {
      const part = el("i", "", share), percent = (panel.shares[name] * 100).toFixed(1) + "%";
      part.style.width = percent;
      part.style.background = name === "idle" ? "transparent" : `var(--${name})`;
      parts.push(`${name === "busy" ? "rollout" : name} ${percent}`);
    }
    share.title = parts.join(", ") + " of device seconds since the first rank was active";
    const figure = el("span", "", figures);
    figure.textContent = parts.join(" · ");
    const svg = make("svg", {class: "chart", role: "img", "aria-label": `${panel.name}: ${parts.join(", ")}`}, section);
    listen(svg, index);
  });
}
function draw() {
  reset.hidden = view[0] === from && view[1] === to;
  drawAxis(axis);
  document.querySelectorAll("svg.chart").forEach((svg, index) => {
    drawn[index] = drawPanel(data.panels[index], index, svg);
  });
}
build();
draw();
addEventListener("resize", draw);
</script>
</body>
</html>
"""
