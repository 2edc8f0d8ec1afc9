// SPDX-License-Identifier: Apache-2.0
//
// The filter field: a row is shown if its texts contain every word of the filter.

import { troubleOf } from "./devices.js";

function leaseTexts(lease) {
  return [lease.user, lease.name, lease.command];
}

export class Filter {
  constructor(field, changed) {
    this.field = field;
    this.words = [];
    field.addEventListener("input", () => {
      this.words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      changed();
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "radio";
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.field.focus();
      this.field.select();
    } else if (event.key === "Escape" && event.target === this.field) {
      this.field.value = "";
      this.field.dispatchEvent(new Event("input"));
    }
  }

  get isEmpty() {
    return this.words.length === 0;
  }

  matches(texts) {
    if (this.isEmpty) return true;
    const lower = texts.filter(Boolean).map((text) => String(text).toLowerCase());
    return this.words.every((word) => lower.some((text) => text.includes(word)));
  }

  device(device, tenants) {
    if (this.isEmpty) return true;
    return this.matches([
      device.id,
      device.name,
      device.state,
      troubleOf(device),
      device.drain?.user,
      ...tenants.flatMap(leaseTexts),
      ...(device.squatters ?? []).flatMap((process) => [process.user, process.command, process.pid]),
    ]);
  }

  lease(lease) {
    return this.matches(leaseTexts(lease));
  }

  claim(claim) {
    return this.matches([...leaseTexts(claim), claim.request, "waiting"]);
  }
}
