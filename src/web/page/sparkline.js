// SPDX-License-Identifier: Apache-2.0
//
// The load of the last minutes as a line, 150 buckets wide at any size.

import { make, makeSvg, setAttribute } from "./dom.js";
import { BUCKETS } from "./store.js";

const HEIGHT = 40;
const LONGEST_GAP = 7; // the line connects values that are at most this many buckets apart

function paths(history) {
  let line = "";
  let area = "";
  let start = null;
  let last = null;

  const finish = () => {
    if (start !== null) area += `L${last},${HEIGHT}L${start},${HEIGHT}Z`;
  };
  history.each((age, value) => {
    const x = BUCKETS - 1 - age;
    const point = `${x},${(HEIGHT - 1 - value * (HEIGHT - 2)).toFixed(1)}`;
    if (last !== null && x - last <= LONGEST_GAP) {
      line += `L${point}`;
      area += `L${point}`;
    } else {
      finish();
      start = x;
      // A single value is drawn as a short line, to be visible.
      line += `M${x - 0.6},${point.split(",")[1]}L${point}`;
      area += `M${x},${HEIGHT}L${point}`;
    }
    last = x;
  });
  finish();
  return { line, area };
}

export class Sparkline {
  constructor() {
    this.area = makeSvg("path", { class: "area" });
    this.line = makeSvg("path", { class: "line" });
    this.svg = makeSvg("svg", {
      viewBox: `0 0 ${BUCKETS - 1} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    this.svg.append(this.area, this.line);
    this.node = make("div", "sparkline", this.svg);
  }

  // Returns whether there is a value to draw.
  draw(history) {
    const { line, area } = paths(history);
    setAttribute(this.line, "d", line);
    setAttribute(this.area, "d", area);
    return line !== "";
  }
}
