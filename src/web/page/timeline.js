// SPDX-License-Identifier: Apache-2.0
//
// The timeline: a row for each device, a bar for each lease of the last hours. Bars of current leases
// grow.

import { byId, make, makeOthersText, makeSvg, setAttribute, setClass, setHidden, setList, setOthersText, setText, setUserColour } from "./dom.js";
import { jobOf } from "./devices.js";
import { layOut, ticks } from "./timeline_layout.js";
import { count, cut, duration, isNumber, moment, plain, shortClock, timeOf } from "./text.js";

const HOUR = 3600 * 1000;
const AXIS = 22;
const LETTER = 6.8; // the approximate width of a letter, pixels
const LABEL = 12; // the most letters of a device's id
const MOST_ROWS = 200;

function idsOf(lease) {
  return [...new Set((lease.devices ?? []).map((device) => (typeof device === "string" ? device : device.id)))];
}

function spanOf(lease, end) {
  const start = timeOf(lease.granted_at);
  if (start === null) return null;
  const key = `${lease.id}@${Math.floor(start / 1000)}`;
  return { lease, key, devices: idsOf(lease), start, end: end ?? Infinity, running: end === null };
}

// Returns all known leases, each once. The store overrides the history, which is older.
export function knownLeases(history, historyTime, store) {
  const spans = new Map();
  const add = (span) => span && spans.set(span.key, span);
  for (const lease of history) add(spanOf(lease, timeOf(lease.ended_at) ?? historyTime));
  for (const lease of store.recent) add(spanOf(lease, timeOf(lease.ended_at) ?? store.now()));
  for (const lease of store.leases.values()) add(spanOf(lease, null));
  return [...spans.values()];
}

function endWords(span) {
  if (span.running) return "still held";
  const { end, exit_code: code } = span.lease;
  return `${end ? plain(end) : "ended"}${isNumber(code) && code !== 0 ? `, exit code ${code}` : ""}`;
}

function describe(bar, now) {
  if (bar.spans.length > 1) return `${count(bar.spans.length, "short lease")}, ${shortClock(bar.start)} to ${shortClock(bar.end)}`;
  const { lease } = bar.span;
  const until = bar.span.running ? "now" : shortClock(bar.end);
  const held = duration((Math.min(bar.end, now) - bar.start) / 1000);
  return `${plain(lease.user)}, ${cut(plain(jobOf(lease)), 80)}, ${shortClock(bar.start)} to ${until}, ${held}, ${endWords(bar.span)}`;
}

const barOf = new WeakMap(); // node: its Bar

class Bar {
  constructor() {
    this.rect = makeSvg("rect", { rx: 3 });
    this.text = makeSvg("text", { x: 5, y: "50%" });
    // Clips text that is wider than estimated.
    this.window = makeSvg("svg");
    this.window.append(this.text);
    this.node = makeSvg("g", { class: "lease-bar", role: "img", tabindex: "-1" });
    this.node.append(this.rect, this.window);
    barOf.set(this.node, this);
  }

  update(bar, row, now) {
    const height = row.height / bar.lanes;
    const width = Math.max(bar.right - bar.x - (bar.right - bar.x > 4 ? 1 : 0), 1);
    const several = bar.spans.length > 1;
    const user = plain(bar.span.lease.user);

    this.bar = bar;
    this.device = row.device;
    setUserColour(this.node, bar.span.lease.user);
    setClass(this.node, "several", several);
    setClass(this.node, "running", bar.span.running && !several);
    setClass(this.node, "thin", bar.lanes > 1);
    setClass(this.node, "dim", row.isDim(bar));
    setAttribute(this.rect, "x", bar.x.toFixed(1));
    setAttribute(this.rect, "y", (bar.lane * height).toFixed(1));
    setAttribute(this.rect, "width", width.toFixed(1));
    setAttribute(this.rect, "height", Math.max(height - 1, 2).toFixed(1));
    const room = Math.floor((width - 10) / LETTER);
    const shown = several || room < 3 || height < 12 ? "" : cut(`${user} · ${plain(jobOf(bar.span.lease))}`, room);
    setText(this.text, shown);
    for (const name of ["x", "y", "width", "height"]) setAttribute(this.window, name, this.rect.getAttribute(name));
    setAttribute(this.window, "visibility", shown === "" ? "hidden" : null);
    setAttribute(this.node, "aria-label", `${row.device}: ${describe(bar, now)}`);
  }
}

class Row {
  constructor() {
    this.label = makeSvg("text", { class: "row-label" });
    this.back = makeSvg("rect", { class: "row-back", rx: 3 });
    this.bars = makeSvg("g");
    this.node = makeSvg("g", { class: "row" });
    this.node.append(this.label, this.back, this.bars);
  }

  update(row, now) {
    setAttribute(this.node, "transform", `translate(0 ${row.y})`);
    setText(this.label, cut(plain(row.device), LABEL));
    setAttribute(this.label, "y", row.height / 2);
    setAttribute(this.back, "x", row.left);
    setAttribute(this.back, "width", row.width);
    setAttribute(this.back, "height", row.height);
    setAttribute(this.bars, "transform", `translate(${row.left} 0)`);
    setList(this.bars, row.bars, (bar) => bar.key, () => new Bar(), row, now);
  }
}

class Tick {
  constructor() {
    this.line = makeSvg("line", { y1: AXIS - 4 });
    this.text = makeSvg("text", { y: AXIS - 10, "text-anchor": "middle" });
    this.node = makeSvg("g", { class: "tick" });
    this.node.append(this.line, this.text);
  }

  update(time, x, bottom) {
    setAttribute(this.node, "transform", `translate(${x(time).toFixed(1)} 0)`);
    setAttribute(this.line, "y2", bottom);
    setText(this.text, shortClock(time));
  }
}

class TableRow {
  constructor() {
    this.user = makeOthersText();
    this.job = makeOthersText();
    this.others = [0, 1, 2, 3].map(() => make("td"));
    this.node = make("tr", "", make("td", "", this.user), make("td", "", this.job), ...this.others);
  }

  update(span, now) {
    const [devices, from, held, end] = this.others;
    setOthersText(this.user, span.lease.user, 24);
    setOthersText(this.job, jobOf(span.lease), 60);
    setText(devices, cut(span.devices.map(plain).join(", "), 80));
    setText(from, moment(span.start, now));
    setText(held, duration((Math.min(span.end, now) - span.start) / 1000));
    setText(end, endWords(span));
  }
}

export class Timeline {
  constructor() {
    this.box = byId("timeline");
    this.svg = byId("timeline-chart");
    this.rows = makeSvg("g");
    this.axis = makeSvg("g", { class: "axis", "aria-hidden": "true" });
    this.svg.append(this.axis, this.rows);
    this.details = byId("timeline-details");
    this.table = byId("timeline-table");
    this.drawnAt = 0;
    this.isDue = true;
    this.current = null; // the key of the focused bar
    new ResizeObserver(() => (this.isDue = true)).observe(byId("history"));
    this.listen();
  }

  listen() {
    // Listen on the box: with a focus listener on the chart, browsers make the chart focusable.
    this.svg.addEventListener("pointerover", (event) => this.show(event.target.closest(".lease-bar")));
    this.svg.addEventListener("pointerleave", () => this.show(document.activeElement?.closest?.(".lease-bar") ?? null));
    this.box.addEventListener("focusin", (event) => this.focus(event.target.closest(".lease-bar")));
    this.box.addEventListener("focusout", () => this.show(null));
    this.box.addEventListener("keydown", (event) => this.move(event));
    byId("timeline-as-table").addEventListener("toggle", () => (this.isDue = true));
  }

  // Draws if something changed, or if time has moved the bars by half a pixel.
  draw(store, hours, findLeases, devices, filter) {
    const width = byId("history").clientWidth - 2;
    const now = store.now();
    const pixel = (hours * HOUR) / Math.max(width, 1);

    if (width <= 0 || (!this.isDue && Math.abs(now - this.drawnAt) < pixel / 2)) return;
    this.isDue = false;
    this.drawnAt = now;
    const known = findLeases();
    this.drawChart({ width, now, from: now - hours * HOUR, known, devices, filter });
    this.drawTable(known, now, now - hours * HOUR, filter);
  }

  drawChart({ width, now, from, known, devices, filter }) {
    const height = devices.length > 24 ? 15 : 24;
    const gap = devices.length > 24 ? 2 : 5;
    const longest = devices.reduce((most, device) => Math.max(most, Math.min(plain(device.id).length, LABEL)), 0);
    const left = 20 + Math.ceil(longest * (height < 20 ? 6.9 : 7.7));
    const chart = Math.max(width - left - 8, 50);
    const placed = layOut(known.map((span) => ({ ...span, end: Math.min(span.end, now) })), from, now, chart);
    const rows = [];

    for (const device of devices) {
      const bars = placed.get(device.id) ?? [];
      const isMeant = filter.device(device);
      if (!isMeant && !bars.some((bar) => bar.spans.some((span) => filter.lease(span.lease)))) continue;
      const isDim = (bar) => !isMeant && !bar.spans.some((span) => filter.lease(span.lease));
      rows.push({ device: device.id, bars, isDim, height, left, width: chart, y: AXIS + rows.length * (height + gap) });
    }
    const bottom = AXIS + rows.length * (height + gap);
    const x = (time) => left + ((time - from) / (now - from)) * chart;
    const times = ticks(from, now, chart, 56).filter((time) => x(time) > left + 14 && x(time) < width - 20);

    setAttribute(this.svg, "viewBox", `0 0 ${width} ${bottom}`);
    setAttribute(this.svg, "width", width);
    setAttribute(this.svg, "height", bottom);
    setList(this.axis, times, (time) => time, () => new Tick(), x, bottom);
    setList(this.rows, rows, (row) => row.device, () => new Row(), now);
    setClass(this.svg, "dense", height < 20);
    const isEmpty = rows.every((row) => row.bars.length === 0);
    setHidden(byId("timeline-empty"), !isEmpty);
    setHidden(this.box, isEmpty);
    this.setStop();
  }

  drawTable(known, now, from, filter) {
    if (!byId("timeline-as-table").open) return;
    const shown = known
      .filter((span) => span.end > from && filter.lease(span.lease))
      .sort((one, other) => other.start - one.start);
    setList(this.table, shown.slice(0, MOST_ROWS), (span) => span.key, () => new TableRow(), now);
    setText(byId("timeline-table-more"), shown.length > MOST_ROWS ? `and ${shown.length - MOST_ROWS} earlier ones` : "");
  }

  // ---- The bar under the pointer or with the focus ----

  allBars() {
    return [...this.rows.children].map((row) => [...row.lastElementChild.children]).filter((bars) => bars.length > 0);
  }

  // The chart is one Tab stop; the arrow keys move within it.
  setStop() {
    const rows = this.allBars();
    const all = rows.flat();
    const isAt = ({ bar, device }) => bar.key === this.current?.key && device === this.current?.device;
    const stop = all.find((node) => isAt(barOf.get(node))) ?? all[0];
    for (const node of all) setAttribute(node, "tabindex", node === stop ? "0" : "-1");
  }

  focus(node) {
    if (node === null) return;
    const { bar, device } = barOf.get(node);
    this.current = { key: bar.key, device };
    this.setStop();
    this.show(node);
  }

  move(event) {
    const node = event.target.closest(".lease-bar");
    const rows = this.allBars();
    const row = rows.findIndex((bars) => bars.includes(node));
    if (row < 0) return;
    const place = rows[row].indexOf(node);
    const distance = (other) => Math.abs(barOf.get(other).bar.x - barOf.get(node).bar.x);
    const nearest = (bars) => bars?.reduce((best, other) => (distance(other) < distance(best) ? other : best));
    const next = {
      ArrowLeft: () => rows[row][place - 1],
      ArrowRight: () => rows[row][place + 1],
      ArrowUp: () => nearest(rows[row - 1]),
      ArrowDown: () => nearest(rows[row + 1]),
      Home: () => rows[row][0],
      End: () => rows[row].at(-1),
      Escape: () => this.show(null),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    next()?.focus();
  }

  show(node) {
    setHidden(this.details, node === null);
    if (node === null) return;
    const { bar, device } = barOf.get(node);
    const now = this.drawnAt;
    const { lease } = bar.span;
    const title = this.details.querySelector(".job");
    const who = this.details.querySelector(".user");
    const lines = this.details.querySelector("dl");
    const several = bar.spans.length > 1;

    setOthersText(who, several ? "" : lease.user, 40);
    setOthersText(title, several ? count(bar.spans.length, "short lease") : jobOf(lease), 100);
    lines.replaceChildren();
    const add = (name, value) => {
      const text = makeOthersText();
      setOthersText(text, value, 200);
      lines.append(make("dt", "", name), make("dd", "", text));
    };
    add(several ? "device" : "devices", several ? device : bar.span.devices.join(", "));
    if (several) add("users", [...new Set(bar.spans.map((span) => plain(span.lease.user)))].join(", "));
    else if (lease.name && lease.command) add("command", lease.command);
    const until = bar.span.running ? "now" : moment(bar.end, now);
    add("from – to", `${moment(bar.start, now)} – ${several ? moment(bar.end, now) : until}`);
    if (!several) {
      add("held", duration((Math.min(bar.end, now) - bar.start) / 1000));
      const claimed = timeOf(lease.claimed_at);
      const waited = isNumber(lease.waited_s) ? lease.waited_s : claimed === null ? null : (bar.start - claimed) / 1000;
      add("waited", duration(waited));
      add("end", endWords(bar.span));
    }
    this.place(node);
  }

  // Places the details below or above the bar, within the window.
  place(node) {
    const bar = node.firstElementChild.getBoundingClientRect();
    const box = this.details.getBoundingClientRect();
    const below = bar.bottom + 8 + box.height < window.innerHeight;
    const left = Math.min(Math.max(bar.left, 8), document.documentElement.clientWidth - box.width - 8);
    this.details.style.left = `${Math.max(left, 8)}px`;
    this.details.style.top = `${below ? bar.bottom + 8 : Math.max(bar.top - box.height - 8, 8)}px`;
  }
}
