// SPDX-License-Identifier: Apache-2.0
//
// The event stream of berth web. It reconnects whenever it breaks.

const EVENTS = ["hello", "load", "devices", "lease", "queue", "state", "tick"];
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;
const SILENCE_TIMEOUT = 20000; // an open stream has a tick every 5 s

// Finds out why the stream ended, which EventSource does not report: "no token" or "other".
async function findReason() {
  try {
    const answer = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(LONGEST_PAUSE) });
    answer.body?.cancel();
    return answer.status === 401 ? "no token" : "other";
  } catch {
    return "other";
  }
}

export class Stream {
  // listener.event(kind, data), listener.connection("open" | "lost" | "no token")
  constructor(listener) {
    this.listener = listener;
    this.source = null;
    this.timer = null;
    this.pause = FIRST_PAUSE;
    this.heardAt = 0;
    // Reconnect at once when a phone or laptop wakes up.
    window.addEventListener("online", () => this.open());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.timer !== null) this.open();
    });
    setInterval(() => this.check(), 5000);
  }

  open() {
    this.close();
    this.heardAt = Date.now();
    const source = new EventSource("/api/events");
    this.source = source;
    for (const kind of EVENTS) source.addEventListener(kind, (event) => this.take(kind, event));
    source.addEventListener("error", () => this.lose(source));
  }

  close() {
    clearTimeout(this.timer);
    this.timer = null;
    this.source?.close();
    this.source = null;
  }

  take(kind, event) {
    let data;
    this.heardAt = Date.now();
    try {
      data = JSON.parse(event.data);
    } catch {
      return;
    }
    this.pause = FIRST_PAUSE;
    this.listener.connection("open");
    this.listener.event(kind, data);
  }

  async lose(source) {
    if (this.source !== source) return;
    this.close();
    const found = await findReason();
    if (this.source !== null || this.timer !== null) return;
    this.listener.connection(found === "no token" ? "no token" : "lost");
    if (found === "no token") return;
    this.timer = setTimeout(() => this.open(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  // Reopens a stream that is silent: its connection may be broken.
  check() {
    if (this.source === null || Date.now() - this.heardAt < SILENCE_TIMEOUT) return;
    this.open();
  }
}
