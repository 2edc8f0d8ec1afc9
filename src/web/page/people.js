// SPDX-License-Identifier: Apache-2.0
//
// The table of users: current devices from the pool, the last hours from the report.

import { byId, make, makeOthersText, setHidden, setList, setOthersText, setText, setUserColour } from "./dom.js";
import { isNumber, percent } from "./text.js";

class Row {
  constructor() {
    this.user = makeOthersText("user");
    this.cells = ["devices", "waiting", "hours", "idle"].map((name) => make("td", name));
    const heading = make("th", "", this.user);
    heading.scope = "row";
    this.node = make("tr", "", heading, ...this.cells);
  }

  update(person) {
    const [devices, waiting, hours, idle] = this.cells;
    setUserColour(this.node, person.user);
    setOthersText(this.user, person.user, 24);
    setText(devices, person.devices > 0 ? sharesText(person.devices) : "–");
    setText(waiting, person.waiting > 0 ? String(person.waiting) : "–");
    setText(hours, isNumber(person.hours) ? person.hours.toFixed(1) : "–");
    setText(idle, percent(person.idle));
  }
}

// Formats a number of devices; shares count as fractions.
function sharesText(number) {
  return Number.isInteger(number) ? String(number) : number.toFixed(2).replace(/0$/, "");
}

function tally(store, report) {
  const people = new Map();
  const of = (user) => {
    const name = user ?? "unknown";
    if (!people.has(name)) people.set(name, { user: name, devices: 0, waiting: 0, hours: null, idle: null });
    return people.get(name);
  };

  for (const lease of store.leases.values()) {
    const person = of(lease.user);
    // Devices of an inner lease are counted with the outer one.
    if (!lease.parent) for (const part of lease.devices ?? []) person.devices += part.share ?? 1;
  }
  for (const claim of store.queue) of(claim.user).waiting += 1;
  for (const row of report?.rows ?? []) {
    const person = of(row.key);
    person.hours = row.gpu_hours;
    person.idle = row.idle_share;
  }
  return [...people.values()].sort(
    (one, other) =>
      other.devices - one.devices || (other.hours ?? 0) - (one.hours ?? 0) || (one.user < other.user ? -1 : 1),
  );
}

export function drawPeople(store, report, hours, matches) {
  const people = tally(store, report).filter((person) => matches([person.user]));
  setList(byId("people-rows"), people, (person) => person.user, () => new Row());
  setText(byId("people-hours"), `now, and in the last ${hours === 1 ? "hour" : `${hours} hours`}`);
  setHidden(byId("people-table"), people.length === 0);
  setHidden(byId("people-empty"), people.length > 0);
}
