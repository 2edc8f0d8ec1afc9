// SPDX-License-Identifier: Apache-2.0
//
// The way to berth web: one stream of events, opened again by itself whenever it breaks.

const EVENTS = ["hello", "load", "devices", "lease", "queue", "state", "tick"];
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;
const PATIENCE = 20000; // without a word on an open stream, which should tick every 5 s

// An event stream does not tell why it ended, so it is asked for: "no token", or another reason.
async function ask() {
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
    // A phone that wakes up, or a laptop that is opened, need not wait for the pause to pass.
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
    const found = await ask();
    if (this.source !== null || this.timer !== null) return;
    this.listener.connection(found === "no token" ? "no token" : "lost");
    if (found === "no token") return;
    this.timer = setTimeout(() => this.open(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  // A connection that broke without a word is noticed by its silence.
  check() {
    if (this.source === null || Date.now() - this.heardAt < PATIENCE) return;
    this.open();
  }
}
