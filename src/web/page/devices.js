// SPDX-License-Identifier: Apache-2.0
//
// The devices. Each is one element; the style sheet draws it as a card or as a row.

import { make, makeOthersText, setAttribute, setClass, setHidden, setList, setOthersText, setText, setUserColour } from "./dom.js";
import { Sparkline } from "./sparkline.js";
import { count, duration, isNumber, model, moment, percent, plain, sizeOf, timeOf } from "./text.js";

const WARM = 80;
const HOT = 90;
const SOON = 600;
const MOST_TENANTS = 8;
const MOST_PROCESSES = 4;

// Returns the problem of a device that needs attention; null: none.
export function troubleOf(device) {
  if (device.health === "sick" || device.state === "sick") return "sick";
  if (device.state === "squatted" || (device.squatters ?? []).length > 0) return "squatted";
  return device.state === "gone" ? "gone" : null;
}

export function describeProcess(process) {
  const who = process.user ?? (isNumber(process.uid) ? `user ${process.uid}` : "unknown user");
  const command = process.command ? ` · ${plain(process.command)}` : "";
  const container = process.container ? ` · in ${plain(process.container)}` : "";
  return `${plain(who)} · pid ${process.pid}${command}${container}`;
}

// Returns the name of a lease, or else its command.
export function jobOf(lease) {
  return lease.name || lease.command || `lease ${lease.id}`;
}

function shareOf(lease, device) {
  const shares = lease.devices.filter((part) => part.id === device.id).map((part) => part.share ?? 0);
  return shares.reduce((sum, share) => sum + share, 0);
}

class LeaseBadge {
  constructor() {
    this.user = makeOthersText("user");
    this.job = makeOthersText("job");
    this.held = make("span", "held");
    this.notes = make("span", "notes");
    this.left = make("span", "left");
    this.node = make("li", "lease", this.user, this.job, this.notes, make("span", "times", this.held, this.left));
  }

  update(lease, device, now) {
    const expires = timeOf(lease.expires_at);
    const left = expires === null ? null : (expires - now) / 1000;
    const held = duration((now - timeOf(lease.granted_at)) / 1000);

    setUserColour(this.node, lease.user);
    setOthersText(this.user, lease.user, 24);
    setOthersText(this.job, jobOf(lease), 80);
    setText(this.held, held);
    setAttribute(this.held, "title", `held since ${moment(timeOf(lease.granted_at), now)}, lease ${lease.id}`);
    setText(this.left, left === null ? "" : left > 0 ? `${duration(left)} left` : "time is up");
    setClass(this.left, "soon", left !== null && left < SOON);
    setText(this.notes, this.notesOf(lease, device).join(" · "));
    setHidden(this.notes, this.notes.textContent === "");
  }

  notesOf(lease, device) {
    const notes = [];
    const devices = new Set(lease.devices.map((part) => part.id)).size;
    if (device.state === "shared" || lease.sharing !== "exclusive") notes.push(`${percent(shareOf(lease, device))} share`);
    if (devices > 1) notes.push(`1 of ${devices} devices`);
    if (lease.parent) notes.push(`within lease ${lease.parent}`);
    if (lease.opportunistic) notes.push("opportunistic");
    if (lease.preparing) notes.push("preparing");
    if (lease.ending) notes.push(`ending: ${plain(lease.ending)}`);
    else if (lease.idle_warned && isNumber(lease.idle_s)) notes.push(`idle for ${duration(lease.idle_s)}`);
    return notes;
  }
}

function joined(words) {
  return words.filter(Boolean).join(", ");
}

// Returns the reasons behind the state of a device.
function reasonsOf(device, now) {
  const reasons = [];
  const { drain } = device;
  if (troubleOf(device) === "sick") reasons.push(`sick: ${plain(device.health_reason || "reason unknown")}`);
  if (drain) {
    const who = drain.user ? `by ${plain(drain.user)}` : "";
    const since = drain.since ? `since ${moment(timeOf(drain.since), now)}` : "";
    const what = device.state === "draining" ? "will be out of service" : "out of service";
    reasons.push(`${joined([what, who, since])}${drain.reason ? `: ${plain(drain.reason)}` : ""}`);
  }
  for (const process of (device.lingering ?? []).slice(0, MOST_PROCESSES))
    reasons.push(`still runs after its lease: ${describeProcess(process)}`);
  if (device.state === "elsewhere") reasons.push("held by another pool on this machine");
  if (device.state === "gone") reasons.push("no longer found on this machine");
  if (device.state === "asleep") reasons.push("in power saving mode; reading would wake it");
  const squatters = device.squatters ?? [];
  for (const process of squatters.slice(0, MOST_PROCESSES))
    reasons.push(`used without a lease by ${describeProcess(process)}`);
  if (squatters.length > MOST_PROCESSES) reasons.push(`and by ${squatters.length - MOST_PROCESSES} more`);
  return reasons;
}

class Reason {
  constructor() {
    this.text = makeOthersText();
    this.node = make("li", "reason", this.text);
  }

  update(reason) {
    setOthersText(this.text, reason, 160);
  }
}

function makeFigure(name, className) {
  const value = make("span", "value");
  const node = make("li", `figure ${className}`, make("span", "name", name), " ", value);
  return { node, value };
}

class DeviceCard {
  constructor(device) {
    this.name = make("h3", "id");
    this.model = make("p", "model");
    this.state = make("p", "state");
    this.spark = new Sparkline();
    this.load = makeFigure("load", "load");
    this.memory = makeFigure("memory", "memory");
    this.memoryFill = make("div", "fill");
    this.memoryBar = make("div", "bar", this.memoryFill);
    this.memoryBar.setAttribute("aria-hidden", "true");
    this.memory.node.append(this.memoryBar);
    this.temperature = makeFigure("temperature", "temperature");
    this.power = makeFigure("power", "power");
    this.leases = make("ul", "leases");
    this.more = make("p", "more");
    this.reasons = make("ul", "reasons");
    this.load.node.append(this.spark.node);
    const figures = make("ul", "figures", this.load.node, this.memory.node, this.temperature.node, this.power.node);
    const head = make("div", "head", this.name, this.model, this.state);
    this.node = make("li", "device", head, figures, make("div", "holders", this.leases, this.more, this.reasons));
    this.node.id = `device-${device.id}`;
  }

  update(device, store, now) {
    const tenants = store.tenantsOf(device.id);
    const trouble = troubleOf(device);

    setAttribute(this.node, "data-state", trouble ?? device.state ?? "unknown");
    setText(this.name, plain(device.id));
    setText(this.model, model(device.name));
    setAttribute(this.model, "title", this.factsOf(device));
    setText(this.state, this.wordOf(device, tenants, trouble));
    setAttribute(this.state, "title", device.state === "shared" ? "the share of the device that is leased" : null);
    this.updateFigures(device);
    setList(this.leases, tenants.slice(0, MOST_TENANTS), (lease) => lease.id, () => new LeaseBadge(), device, now);
    setHidden(this.leases, tenants.length === 0);
    setText(this.more, tenants.length > MOST_TENANTS ? `and ${tenants.length - MOST_TENANTS} more` : "");
    setHidden(this.more, tenants.length <= MOST_TENANTS);
    const reasons = [...new Set(reasonsOf(device, now))];
    setList(this.reasons, reasons, (reason) => reason, () => new Reason());
    setHidden(this.reasons, reasons.length === 0);
    setUserColour(this.node, tenants[0]?.user);
  }

  wordOf(device, tenants, trouble) {
    if (trouble) return trouble;
    if (device.state !== "shared") return device.state ?? "unknown";
    const used = tenants.filter((lease) => !lease.parent).reduce((sum, lease) => sum + shareOf(lease, device), 0);
    return `shared ${percent(used)}`;
  }

  factsOf(device) {
    return joined([
      plain(device.name ?? "unknown model"),
      device.pci && `at ${plain(device.pci)}`,
      isNumber(device.numa) && `NUMA node ${device.numa}`,
      device.uuid && plain(device.uuid),
    ]);
  }

  updateFigures(device) {
    const { memory_used: used, memory_total: total, temperature_c: celsius, power_w: watts } = device;
    const filled = isNumber(used) && isNumber(total) && total > 0 ? Math.min(Math.max(used / total, 0), 1) : null;

    setText(this.load.value, isNumber(device.utilization) ? percent(device.utilization) : "unknown");
    setClass(this.load.value, "unknown", !isNumber(device.utilization));
    setText(this.memory.value, sizeOf(used, total));
    setClass(this.memoryBar, "unknown", filled === null);
    this.memoryFill.style.transform = `scaleX(${(filled ?? 0).toFixed(3)})`;
    setText(this.temperature.value, isNumber(celsius) ? `${Math.round(celsius)} °C` : "– °C");
    setClass(this.temperature.node, "warm", isNumber(celsius) && celsius >= WARM);
    setClass(this.temperature.node, "hot", isNumber(celsius) && celsius >= HOT);
    setText(this.power.value, isNumber(watts) ? `${Math.round(watts)} W` : "– W");
    setClass(this.node, "old", Boolean(device.old));
  }

  drawLoad(history) {
    setClass(this.node, "unread", !this.spark.draw(history));
  }
}

export function drawDevices(list, store, shown) {
  const now = store.now();
  const parts = setList(list, shown, (device) => device.id, (device) => new DeviceCard(device), store, now);
  for (const device of shown) parts.get(device.id).drawLoad(store.loads.get(device.id));
}

export function describeCount(shown, all) {
  return shown === all ? count(all, "device") : `${shown} of ${count(all, "device")}`;
}
