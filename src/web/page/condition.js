// SPDX-License-Identifier: Apache-2.0
//
// How old what is shown is, and why, in words.

import { byId, setAttribute, setText } from "./dom.js";
import { clock, duration, moment, plain } from "./text.js";

const PATIENCE = 15000;

// {level: "live" | "waiting" | "old" | "gone", words, short}; short is what stays the same while time passes.
export function conditionOf(store, connection, silence) {
  const asOf = store.newsAt === null ? "" : `: as of ${clock(store.newsAt)}`;
  const { daemon } = store;
  const since = daemon.since === null ? "" : ` since ${moment(daemon.since, Date.now())}`;
  const reason = daemon.reason ? ` (${plain(daemon.reason)})` : "";

  if (connection === "connecting") return { level: "waiting", words: "connecting…", short: "connecting" };
  if (connection === "no token") return { level: "waiting", words: "wants a token", short: "wants a token" };
  if (connection === "lost") {
    const short = "cannot reach berth web, trying again";
    return { level: "gone", words: `${short}${asOf}`, short };
  }
  if (silence > PATIENCE) {
    return { level: "old", words: `no news for ${duration(silence / 1000)}${asOf}`, short: "no news" };
  }
  if (daemon.state === "gone") {
    const short = `the daemon is gone${since}, trying again`;
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
  // Only what is new is read out, not every second that passes.
  setText(byId("spoken"), condition.short);
}
