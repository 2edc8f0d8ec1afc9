// SPDX-License-Identifier: Apache-2.0
//
// The form for the token, shown if berth web needs one. berth web answers with a cookie that scripts
// cannot read.

import { byId, setHidden, setText } from "./dom.js";
import { keep, read } from "./preferences.js";

export class Login {
  constructor(entered) {
    this.form = byId("login");
    this.field = byId("token");
    this.problem = byId("login-problem");
    this.leave = byId("log-out");
    this.entered = entered;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.leave.addEventListener("click", () => this.logOut());
    setHidden(this.leave, read("token", "none", ["none", "given"]) !== "given");
  }

  ask() {
    if (!this.form.hidden) return;
    setHidden(this.form, false);
    setHidden(byId("content"), true);
    setHidden(byId("search"), true);
    setHidden(this.leave, true);
    this.field.focus();
  }

  done() {
    if (this.form.hidden) return;
    setHidden(this.form, true);
    setHidden(byId("content"), false);
    setHidden(byId("search"), false);
    setHidden(this.leave, false);
  }

  async send() {
    const token = this.field.value.trim();
    if (token === "") return this.refuse("Please enter the token.");
    let answer;
    try {
      answer = await fetch("/login", { method: "POST", body: new URLSearchParams({ token }) });
    } catch {
      return this.refuse("Cannot reach berth web.");
    }
    if (answer.status === 401 || answer.status === 403) return this.refuse("Wrong token.");
    if (!answer.ok) return this.refuse(`berth web answered ${answer.status}.`);
    this.field.value = "";
    setText(this.problem, "");
    keep("token", "given");
    setHidden(this.leave, false);
    this.entered();
  }

  refuse(words) {
    setText(this.problem, words);
    this.field.setAttribute("aria-invalid", "true");
    this.field.select();
    this.field.focus();
  }

  async logOut() {
    try {
      await fetch("/logout", { method: "POST" });
    } catch {
      return;
    }
    keep("token", "none");
    location.reload();
  }
}
