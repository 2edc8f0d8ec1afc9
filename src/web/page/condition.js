// SPDX-License-Identifier: Apache-2.0
//
// The state of the connection in words: live, or how old the page is and why.

import { byId, setAttribute, setText } from "./dom.js";
import { clock, duration, moment, plain } from "./text.js";

const NEWS_TIMEOUT = 15000;

// Returns {level: "live" | "waiting" | "old" | "gone", words, short}. `short` does not change with time.
export function conditionOf(store, connection, silence) {
  const asOf = store.newsAt === null ? "" : `: as of ${clock(store.newsAt)}`;
  const { daemon } = store;
  const since = daemon.since === null ? "" : ` since ${moment(daemon.since, Date.now())}`;
  const reason = daemon.reason ? ` (${plain(daemon.reason)})` : "";

  if (connection === "connecting") return { level: "waiting", words: "connecting…", short: "connecting" };
  if (connection === "no token") return { level: "waiting", words: "needs a token", short: "needs a token" };
  if (connection === "lost") {
    const short = "cannot reach berth web, reconnecting";
    return { level: "gone", words: `${short}${asOf}`, short };
  }
  if (silence > NEWS_TIMEOUT) {
    return { level: "old", words: `no news for ${duration(silence / 1000)}${asOf}`, short: "no news" };
  }
  if (daemon.state === "gone") {
    const short = `the daemon is gone${since}, reconnecting`;
    return { level: "gone", words: short, short, reason };
  }
  if (daemon.state === "silent") {
    const short = `the daemon has not answered${since}`;
    return { level: "old", words: short, short, reason };
  }
  return { level: "live", words: "live", short: "live" };
}

export function showCondition(condition) {
  const root = document.documentElement;
  setAttribute(root, "data-condition", condition.level);
  setText(byId("live-words"), condition.words);
  setAttribute(byId("live"), "title", condition.reason ? condition.reason.trim() : null);
  // Screen readers announce only changes, not every second.
  setText(byId("spoken"), condition.short);
}
