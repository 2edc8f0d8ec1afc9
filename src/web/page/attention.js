// SPDX-License-Identifier: Apache-2.0
//
// The problems that need attention, listed at the top.

import { describeProcess, troubleOf } from "./devices.js";
import { byId, make, makeOthersText, setAttribute, setHidden, setList, setOthersText, setText } from "./dom.js";
import { plain } from "./text.js";

const MOST = 8;

class Trouble {
  constructor() {
    this.kind = make("strong", "kind");
    this.text = makeOthersText();
    this.node = make("li", "trouble", this.kind, " ", this.text);
  }

  update(trouble) {
    setText(this.kind, trouble.kind);
    setAttribute(this.node, "data-kind", trouble.level);
    setOthersText(this.text, trouble.text, 220);
  }
}

function squatText(device) {
  const squatters = device.squatters ?? [];
  if (squatters.length === 0) return "is used without a lease";
  const more = squatters.length > 1 ? `, and by ${squatters.length - 1} more` : "";
  return `is used without a lease by ${describeProcess(squatters[0])}${more}`;
}

const TEXTS = {
  sick: (device) => `is sick: ${plain(device.health_reason || "reason unknown")}`,
  squatted: squatText,
  gone: () => "is no longer found on this machine",
};

function troublesOf(store) {
  const troubles = [];
  for (const device of store.devices.values()) {
    const level = troubleOf(device);
    if (level) troubles.push({ key: `device ${device.id}`, level, kind: plain(device.id), text: TEXTS[level](device) });
  }
  store.problems.forEach((problem, index) =>
    troubles.push({ key: `problem ${index}`, level: "problem", kind: plain(problem.backend ?? "berth"), text: problem.message }),
  );
  return troubles;
}

export function showAttention(store) {
  const troubles = troublesOf(store);
  const shown = troubles.slice(0, MOST);
  setHidden(byId("attention"), troubles.length === 0);
  setText(byId("attention-title"), troubles.length === 1 ? "1 needs attention" : `${troubles.length} need attention`);
  setList(byId("attention-list"), shown, (trouble) => trouble.key, () => new Trouble());
  setText(byId("attention-more"), troubles.length > shown.length ? `and ${troubles.length - shown.length} more` : "");
}
