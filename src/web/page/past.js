// SPDX-License-Identifier: Apache-2.0
//
// What the history says of the last hours. It is asked rarely: what happens in between is in the store.

const REFRESH = 60000;

async function fetchJson(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

export class Past {
  constructor(changed) {
    this.changed = changed;
    this.hours = 6;
    this.leases = [];
    this.time = null; // that the leases are of
    this.askedAt = 0;
    this.report = null;
    this.problem = null;
    this.timer = null;
    this.dueAt = Infinity;
    this.isLate = false; // it was not asked for while nobody saw it
    this.isReady = false; // nothing is asked before the stream is open
  }

  choose(hours) {
    this.hours = hours;
    if (this.isReady) this.fetchSoon(0);
    this.changed();
  }

  // Asks after `delay` milliseconds, or sooner where that is planned already.
  fetchSoon(delay) {
    const dueAt = Date.now() + delay;
    this.isReady = true;
    if (dueAt >= this.dueAt) return;
    clearTimeout(this.timer);
    this.dueAt = dueAt;
    this.timer = setTimeout(() => this.fetch(), delay);
  }

  async fetch() {
    const { hours } = this;
    this.dueAt = Infinity;
    this.isLate = document.hidden;
    if (this.isLate) return;
    this.askedAt = Date.now();
    try {
      const [history, report] = await Promise.all([
        fetchJson(`/api/history?hours=${hours}`),
        fetchJson(`/api/report?by=user&hours=${hours}`),
      ]);
      if (hours !== this.hours) return;
      this.leases = history.leases ?? [];
      this.time = Date.now();
      this.report = report;
      this.problem = null;
    } catch (error) {
      this.problem = "The history cannot be read just now.";
    }
    this.changed();
  }

  // For somebody who calls it now and then while the page is seen.
  refresh() {
    if (this.isLate || (this.isReady && Date.now() - this.askedAt > REFRESH)) this.fetchSoon(0);
  }
}
