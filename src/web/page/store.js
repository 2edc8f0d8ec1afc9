// SPDX-License-Identifier: Apache-2.0
//
// The state of the pool, updated by the events of berth web. Each part has a limit, so that a page can
// stay open for weeks.

import { isNumber, timeOf } from "./text.js";

const BUCKET = 2000;
export const BUCKETS = 150;
const RECENT_MAX = 2000;

// The load of the last minutes, one value per BUCKET milliseconds; NaN: unknown. It starts with the
// history that berth web sends, and continues with the load events.
export class LoadHistory {
  constructor() {
    this.values = new Float32Array(BUCKETS).fill(NaN);
    this.newest = 0;
  }

  add(time, value) {
    const bucket = Math.floor(time / BUCKET);
    if (bucket < this.newest - 5) this.values.fill(NaN);
    else if (bucket < this.newest) return;
    const passed = Math.min(bucket - this.newest, BUCKETS);
    for (let i = 1; i <= passed; i++) this.values[(bucket - passed + i) % BUCKETS] = NaN;
    this.newest = bucket;
    if (isNumber(value)) this.values[bucket % BUCKETS] = Math.min(Math.max(value, 0), 1);
  }

  // Calls call(age, value) for each known value, the oldest first. The age counts buckets.
  each(call) {
    for (let age = BUCKETS - 1; age >= 0; age--) {
      const bucket = this.newest - age;
      const value = bucket < 0 ? NaN : this.values[bucket % BUCKETS];
      if (!Number.isNaN(value)) call(age, value);
    }
  }
}

function usedMemory(device) {
  return isNumber(device.memory_total) && isNumber(device.memory_free) ? device.memory_total - device.memory_free : null;
}

export class Store {
  constructor() {
    this.version = null;
    this.pool = null;
    this.devices = new Map(); // id: device, in the order of the pool
    this.loads = new Map(); // id: LoadHistory
    this.leases = new Map();
    this.queue = [];
    this.pending = 0;
    this.problems = [];
    this.daemon = { state: "live", since: null, reason: null };
    this.recent = []; // leases that ended while the page was open, oldest first
    this.lead = 0; // how far the pool's clock is ahead of this one, milliseconds
    this.newsAt = null; // the time of the newest event, by the pool's clock
    this.frozenAt = null; // while the page is old: the time that it shows
    this.tenants = new Map(); // device id: its leases
  }

  // Returns the time by the pool's clock, or the time that an old page shows.
  now() {
    return this.frozenAt ?? Date.now() + this.lead;
  }

  // Records the time of an event. Without a live daemon the page does not become newer.
  heard(kind, time) {
    if (time === null) return;
    const isLive = this.daemon.state === "live";
    if (isLive || kind === "tick") this.lead = time - Date.now();
    if (isLive || kind === "hello") this.newsAt = time;
  }

  apply(kind, data) {
    const take = {
      hello: () => this.takeHello(data),
      load: () => this.takeLoad(data),
      devices: () => this.takeDevices(data),
      lease: () => this.takeLease(data),
      queue: () => this.takeQueue(data),
      state: () => this.takeState(data),
      tick: () => {},
    }[kind];
    if (!take) return;
    take();
    this.heard(kind, timeOf(data.time));
  }

  takeHello(data) {
    this.version = data.version ?? null;
    this.pool = data.pool ?? null;
    this.problems = data.problems ?? [];
    this.setDevices(data.devices ?? []);
    if (data.recent) this.takeRecent(data.recent);
    this.leases = new Map((data.leases ?? []).map((lease) => [lease.id, lease]));
    this.queue = data.queue ?? [];
    this.pending = data.pool?.pending ?? this.queue.length;
    this.daemon = { state: data.state ?? "live", since: timeOf(data.since), reason: data.reason ?? null };
    this.countTenants();
  }

  // Adds the loads from before the page was opened.
  takeRecent({ every_s, until, devices }) {
    const end = timeOf(until);
    if (end === null) return;
    for (const { id, utilization } of devices ?? []) {
      const history = this.loads.get(id);
      if (!history || history.newest !== 0) continue;
      utilization.forEach((value, i) => {
        if (isNumber(value)) history.add(end - (utilization.length - 1 - i) * every_s * 1000, value);
      });
    }
  }

  setDevices(devices) {
    this.devices = new Map(devices.map((device) => [device.id, { ...device, memory_used: usedMemory(device) }]));
    for (const id of this.loads.keys()) if (!this.devices.has(id)) this.loads.delete(id);
    for (const id of this.devices.keys()) if (!this.loads.has(id)) this.loads.set(id, new LoadHistory());
  }

  takeLoad(data) {
    const time = timeOf(data.time) ?? this.now();
    for (const load of data.devices ?? []) {
      const device = this.devices.get(load.id);
      if (!device) continue;
      Object.assign(device, load);
      this.loads.get(load.id).add(timeOf(load.sampled_at) ?? time, load.old ? null : load.utilization);
    }
  }

  takeDevices(data) {
    this.setDevices(data.devices ?? []);
    this.problems = data.problems ?? [];
  }

  takeLease(data) {
    const { lease } = data;
    if (data.what === "granted" || data.what === "changed") {
      this.leases.set(lease.id, lease);
    } else {
      this.leases.delete(lease.id);
      this.recent.push({ ...lease, ended_at: data.ended_at, end: data.end ?? data.what, exit_code: data.exit_code });
      if (this.recent.length > RECENT_MAX) this.recent.splice(0, this.recent.length - RECENT_MAX);
    }
    this.countTenants();
  }

  takeQueue(data) {
    this.queue = data.queue ?? [];
    this.pending = data.pending ?? this.queue.length;
  }

  takeState(data) {
    this.daemon = { state: data.state, since: timeOf(data.since), reason: data.reason ?? null };
  }

  countTenants() {
    this.tenants = new Map();
    for (const lease of this.leases.values()) {
      for (const id of new Set((lease.devices ?? []).map((device) => device.id))) {
        if (!this.tenants.has(id)) this.tenants.set(id, []);
        this.tenants.get(id).push(lease);
      }
    }
  }

  tenantsOf(id) {
    return this.tenants.get(id) ?? [];
  }
}
