// SPDX-License-Identifier: Apache-2.0
//
// The dashboard. Events go into the store, and the page is drawn at most once per frame. A hidden tab
// draws nothing.

import { showAttention } from "./attention.js";
import { conditionOf, showCondition } from "./condition.js";
import { describeCount, drawDevices } from "./devices.js";
import { byId, setAttribute, setHidden, setText } from "./dom.js";
import { Filter } from "./filter.js";
import { Login } from "./login.js";
import { Overview } from "./overview.js";
import { Past } from "./past.js";
import { drawPeople } from "./people.js";
import { chooser } from "./preferences.js";
import { Queue } from "./queue.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";
import { Timeline, knownLeases } from "./timeline.js";

const PACE = 100; // the shortest time between two drawings, milliseconds
const AFTER_LEASE = 20000; // milliseconds from a lease event until the history is fetched
const MANY = 16; // with more devices, the layout "auto" shows rows

class Dashboard {
  constructor() {
    this.store = new Store();
    this.state = "connecting";
    this.heardAt = Date.now();
    this.isDue = false; // a drawing is scheduled
    this.drawnAt = 0;
    this.filter = new Filter(byId("filter"), () => this.changed());
    this.queue = new Queue(() => this.redraw());
    this.overview = new Overview();
    this.timeline = new Timeline();
    this.past = new Past(() => this.changed());
    this.layout = chooser("layout", "auto", () => this.redraw());
    this.hours = chooser("hours", "6", (hours) => this.past.choose(Number(hours)));
    chooser("theme", "auto", (theme) => setAttribute(document.documentElement, "data-theme", theme));
    this.login = new Login(() => this.stream.open());
    this.stream = new Stream(this);
    document.addEventListener("visibilitychange", () => this.redraw());
    setInterval(() => this.tick(), 1000);
    this.stream.open();
  }

  // ---- Events ----

  event(kind, data) {
    this.heardAt = Date.now();
    this.store.apply(kind, data);
    if (kind === "hello") this.past.fetchSoon(0);
    if (kind === "lease") this.past.fetchSoon(AFTER_LEASE);
    if (kind === "hello" || kind === "lease" || kind === "devices") this.timeline.isDue = true;
    if (document.hidden && kind !== "load") this.overview.drawTitle(this.store);
    this.redraw();
  }

  connection(state) {
    if (this.state === state) return;
    this.state = state;
    if (state === "no token") this.login.ask();
    else if (state === "open") this.login.done();
    this.redraw();
  }

  // ---- Drawing ----

  tick() {
    if (document.hidden) return;
    this.past.refresh();
    // If an event has just redrawn the page, its times are up to date.
    if (Date.now() - this.drawnAt > 700) this.redraw();
  }

  // Redraws the page with its timeline.
  changed() {
    if (this.timeline) this.timeline.isDue = true;
    this.redraw();
  }

  redraw() {
    if (this.isDue || document.hidden) return;
    this.isDue = true;
    setTimeout(() => requestAnimationFrame(() => this.drawNow()), Math.max(0, this.drawnAt + PACE - Date.now()));
  }

  drawNow() {
    this.isDue = false;
    this.drawnAt = Date.now();
    this.draw();
  }

  draw() {
    const { store, filter } = this;
    this.drawCondition();
    if (store.pool === null || this.state === "no token") return;
    const devices = [...store.devices.values()];
    const shown = devices.filter((device) => filter.device(device, store.tenantsOf(device.id)));

    setHidden(byId("content"), false);
    this.overview.draw(store);
    showAttention(store);
    this.drawDevices(devices, shown);
    this.queue.draw(store, store.queue.filter((claim) => filter.claim(claim)), !filter.isEmpty);
    this.drawTimeline(devices);
    drawPeople(store, this.past.report, this.past.hours, (texts) => filter.matches(texts));
  }

  drawCondition() {
    const condition = conditionOf(this.store, this.state, Date.now() - this.heardAt);
    const isLive = condition.level === "live";
    // Times on the page stop while it is old.
    this.store.frozenAt = isLive ? null : (this.store.frozenAt ?? this.store.newsAt);
    showCondition(condition);
  }

  drawDevices(devices, shown) {
    const list = byId("device-list");
    const layout = this.layout();
    const isRows = layout === "rows" || (layout === "auto" && devices.length > MANY);

    list.className = `devices ${isRows ? "rows" : "cards"}`;
    drawDevices(list, this.store, shown);
    setText(byId("device-count"), describeCount(shown.length, devices.length));
    setText(byId("device-empty"), devices.length === 0 ? "This pool has no devices." : "No device matches the filter.");
    setHidden(byId("device-empty"), shown.length > 0);
  }

  drawTimeline(devices) {
    const { store, filter, past } = this;
    const findLeases = () => knownLeases(past.leases, past.time === null ? null : past.time + store.lead, store);
    const chosen = {
      device: (device) => filter.isEmpty || filter.matches([device.id, device.name]),
      lease: (lease) => filter.isEmpty || filter.lease(lease),
    };
    setText(byId("timeline-problem"), past.problem ?? "");
    this.timeline.draw(store, past.hours, findLeases, devices, chosen);
  }
}

new Dashboard();
