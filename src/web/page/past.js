// SPDX-License-Identifier: Apache-2.0
//
// The history of the last hours. It is fetched rarely; the store has the leases that ended since.

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
    this.time = null; // when the leases were fetched
    this.askedAt = 0;
    this.report = null;
    this.problem = null;
    this.timer = null;
    this.dueAt = Infinity;
    this.isLate = false; // a fetch was skipped because the page was hidden
    this.isReady = false; // nothing is fetched before the stream is open
  }

  choose(hours) {
    this.hours = hours;
    if (this.isReady) this.fetchSoon(0);
    this.changed();
  }

  // Fetches after `delay` milliseconds, or earlier if that is scheduled already.
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
      this.problem = "cannot read the history now";
    }
    this.changed();
  }

  // Called regularly while the page is visible.
  refresh() {
    if (this.isLate || (this.isReady && Date.now() - this.askedAt > REFRESH)) this.fetchSoon(0);
  }
}
