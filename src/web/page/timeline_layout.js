// SPDX-License-Identifier: Apache-2.0
//
// The layout of the bars of a timeline. Pure.

const TINY = 2; // pixels; narrower bars are merged with their neighbours
const MOST_LANES = 8;

// Converts the spans {key, start, end} of one device to pixels. Spans whose bars would be too narrow
// are merged.
function squeeze(spans, scale) {
  const bars = [];
  let several = null;

  for (const span of [...spans].sort((one, other) => one.start - other.start)) {
    const right = Math.max(scale(span.end), scale(span.start) + 1);
    // A current lease is always visible, however short.
    const x = span.running ? Math.min(scale(span.start), right - TINY) : scale(span.start);
    if (right - x >= TINY) {
      bars.push({ span, key: span.key, start: span.start, end: span.end, x, right, spans: [span] });
    } else if (several !== null && x - several.right < 1) {
      several.right = Math.max(several.right, right);
      several.end = Math.max(several.end, span.end);
      several.spans.push(span);
    } else {
      several = { span, key: span.key, start: span.start, end: span.end, x, right, spans: [span] };
      bars.push(several);
    }
  }
  return bars;
}

// Puts bars that overlap into different lanes. A lane is free again when its bar ends.
function setLanes(bars) {
  let lanes = [];
  let cluster = [];

  const finish = () => {
    for (const bar of cluster) bar.lanes = lanes.length;
    lanes = [];
    cluster = [];
  };
  for (const bar of bars.sort((one, other) => one.start - other.start)) {
    // Compare times, not pixels: a bar that ends when another begins does not overlap it.
    if (lanes.every((end) => end <= bar.start)) finish();
    let lane = lanes.findIndex((end) => end <= bar.start);
    if (lane < 0) lane = Math.min(lanes.length, MOST_LANES - 1);
    lanes[lane] = Math.max(lanes[lane] ?? 0, bar.end);
    bar.lane = lane;
    cluster.push(bar);
  }
  finish();
  return bars;
}

// Returns a map of device ids to bars {span, key, start, end, x, right, lane, lanes, spans}, of spans
// {key, devices, start, end, running} that overlap the time from `from` to `to`, which is `width` wide.
export function layOut(all, from, to, width) {
  const spans = new Map();
  const scale = (time) => ((Math.min(Math.max(time, from), to) - from) / (to - from)) * width;

  for (const span of all) {
    if (span.end <= from || span.start >= to) continue;
    for (const id of span.devices) {
      if (!spans.has(id)) spans.set(id, []);
      spans.get(id).push(span);
    }
  }
  return new Map([...spans].map(([id, list]) => [id, setLanes(squeeze(list, scale))]));
}

const MINUTE = 60000;
const STEPS = [5, 10, 15, 30, 60, 120, 180, 360].map((minutes) => minutes * MINUTE);

// Returns round local times that are at least `nearest` pixels apart.
export function ticks(from, to, width, nearest) {
  const step = STEPS.find((candidate) => (candidate / (to - from)) * width >= nearest) ?? STEPS.at(-1);
  const zone = new Date(to).getTimezoneOffset() * MINUTE;
  const times = [];
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) times.push(time);
  return times;
}
