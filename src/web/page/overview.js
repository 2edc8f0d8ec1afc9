// SPDX-License-Identifier: Apache-2.0
//
// The overview: the name of the pool, counts of devices, and a small cell for each device.

import { troubleOf } from "./devices.js";
import { byId, make, setAttribute, setClass, setHidden, setList, setText } from "./dom.js";
import { isNumber, plain } from "./text.js";

const MACHINE = "/run/berth/berth.sock";

class Cell {
  constructor(device) {
    this.fill = make("span", "fill");
    this.node = make("li", "cell", this.fill);
    this.node.addEventListener("click", () => document.getElementById(`device-${device.id}`)?.scrollIntoView({ block: "center" }));
  }

  update(device) {
    const load = isNumber(device.utilization) ? device.utilization : null;
    setAttribute(this.node, "data-state", troubleOf(device) ?? device.state);
    setAttribute(this.node, "title", `${plain(device.id)}: ${plain(troubleOf(device) ?? device.state)}`);
    setClass(this.node, "unknown", load === null);
    this.fill.style.transform = `scaleY(${Math.min(Math.max(load ?? 0, 0), 1).toFixed(2)})`;
  }
}

function poolWords(pool) {
  if (!pool) return "";
  if (pool.inventory) return `inventory ${plain(pool.inventory).split("/").at(-1)}`;
  return pool.socket === MACHINE ? "the machine’s pool" : "own pool";
}

function count(store) {
  const counts = { free: 0, taken: 0, other: 0 };
  for (const device of store.devices.values()) {
    if (device.leased) counts.taken += 1;
    else if (device.state === "free" && !troubleOf(device)) counts.free += 1;
    else counts.other += 1;
  }
  return counts;
}

function titleOf(store, counts) {
  const waiting = store.pending > 0 ? ` · ${store.pending} waiting` : "";
  return store.pool ? `${counts.free} free${waiting} – berth` : "berth";
}

export class Overview {
  constructor() {
    this.cells = byId("cells");
  }

  draw(store) {
    const counts = count(store);
    setText(byId("pool"), poolWords(store.pool));
    setAttribute(byId("pool"), "title", store.pool ? plain(store.pool.inventory ?? store.pool.socket) : null);
    setText(byId("count-free"), String(counts.free));
    setText(byId("count-leased"), String(counts.taken));
    setText(byId("count-other"), String(counts.other));
    setHidden(byId("tile-other"), counts.other === 0);
    setText(byId("count-waiting"), String(store.pending));
    setClass(byId("tile-waiting"), "some", store.pending > 0);
    setList(this.cells, store.devices.values(), (device) => device.id, (device) => new Cell(device));
    setHidden(this.cells, store.devices.size < 2);
    setClass(this.cells, "many", store.devices.size > 24);
    this.cells.style.setProperty("--cells", String(Math.max(store.devices.size, 1)));
    setText(byId("version"), store.version ? `berth ${plain(store.version)}` : "berth");
    document.title = titleOf(store, counts);
  }

  // Updates the title, which is all that a hidden tab shows.
  drawTitle(store) {
    document.title = titleOf(store, count(store));
  }
}
