// SPDX-License-Identifier: Apache-2.0
//
// The queue in its order, with the reason why each claim waits.

import { byId, make, makeOthersText, setAttribute, setClass, setHidden, setList, setOthersText, setText, setUserColour } from "./dom.js";
import { duration, isNumber, moment, roughDuration, shortClock, timeOf } from "./text.js";

const MOST_AT_FIRST = 20;

class Claim {
  constructor() {
    this.position = make("span", "position");
    this.user = makeOthersText("user");
    this.job = makeOthersText("job");
    this.request = makeOthersText("request");
    this.tags = make("span", "tags");
    this.why = makeOthersText("why");
    this.since = make("span", "since");
    this.estimate = make("span", "estimate");
    this.node = make(
      "li",
      "claim",
      this.position,
      make("div", "who", this.user, this.job, this.tags),
      make("div", "what", this.request, this.why),
      make("div", "when", this.estimate, this.since),
    );
  }

  update(claim, now) {
    const since = timeOf(claim.since);
    const tags = [];

    if (claim.priority && claim.priority !== "normal") tags.push(`${claim.priority} priority`);
    if (claim.opportunistic) tags.push("opportunistic");
    if (claim.parent) tags.push(`within lease ${claim.parent}`);
    setUserColour(this.node, claim.user);
    setText(this.position, isNumber(claim.position) && claim.position > 0 ? `${claim.position}.` : "–");
    setOthersText(this.user, claim.user, 24);
    setOthersText(this.job, claim.name || claim.command || `claim ${claim.id}`, 80);
    setText(this.tags, tags.join(" · "));
    setHidden(this.tags, tags.length === 0);
    setOthersText(this.request, claim.request || "unknown request", 120);
    setOthersText(this.why, claim.why || "reason unknown", 200);
    setText(this.since, `waiting ${since === null ? "–" : duration((now - since) / 1000)}`);
    setAttribute(this.since, "title", since === null ? null : `since ${moment(since, now)}`);
    this.updateEstimate(claim, now);
  }

  updateEstimate(claim, now) {
    const known = isNumber(claim.estimate_s);
    setText(this.estimate, known ? `in about ${roughDuration(claim.estimate_s)}` : "no estimate");
    setClass(this.estimate, "unknown", !known);
    setAttribute(this.estimate, "title", known ? `at about ${shortClock(now + claim.estimate_s * 1000)}` : null);
  }
}

export class Queue {
  constructor(redraw) {
    this.list = byId("queue-list");
    this.more = byId("queue-more");
    this.all = byId("queue-all");
    this.showsAll = false;
    this.all.addEventListener("click", () => {
      this.showsAll = !this.showsAll;
      redraw();
    });
  }

  draw(store, claims, filtered) {
    const now = store.now();
    const shown = this.showsAll ? claims : claims.slice(0, MOST_AT_FIRST);
    // "more" counts claims that the server did not send, but not those that the filter hides.
    const unsent = filtered ? 0 : Math.max(0, store.pending - store.queue.length);
    const rest = claims.length - shown.length + unsent;

    setList(this.list, shown, (claim) => claim.id, () => new Claim(), now);
    setHidden(this.list, shown.length === 0);
    setText(byId("queue-empty"), filtered && store.queue.length > 0 ? "No claim matches the filter." : "Nobody waits.");
    setHidden(byId("queue-empty"), shown.length > 0);
    setText(this.more, rest > 0 ? `and ${rest} more` : "");
    setHidden(this.more, rest === 0);
    setHidden(this.all, claims.length <= MOST_AT_FIRST);
    setText(this.all, this.showsAll ? "Show fewer" : `Show all ${claims.length}`);
    setAttribute(this.all, "aria-expanded", String(this.showsAll));
    setText(byId("queue-count"), store.pending > 0 ? `${store.pending} waiting` : "");
  }
}
