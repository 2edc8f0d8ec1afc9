// SPDX-License-Identifier: Apache-2.0
//
// A browser that a test controls: node driver.mjs PLAYWRIGHT SOCKET CHROMIUM
//
// It listens at SOCKET for one client, which sends a command per line, {"do": NAME, "page": NUMBER, ...}. Each is
// answered by a line, {"answer": ...} or {"problem": TEXT}. When the client disconnects, the browser and this program end.

import { existsSync, unlinkSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const [playwright, socket, executablePath] = process.argv.slice(2);
const require = createRequire(`${playwright}/`);
const { chromium } = require("playwright-core");
const { source: axe } = require("axe-core");
const POLL = 40;

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
});
const pages = new Map();
let numbers = 0;

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

const commands = {
  async open({ url, width = 1280, height = 900, scheme = "light", motion = "no-preference", clock = false }) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion });
    const page = await context.newPage();
    const complaints = [];
    const number = ++numbers;
    page.setDefaultTimeout(15000);
    page.on("console", (message) => message.type() === "error" && complaints.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => complaints.push(`error: ${error.stack}`));
    page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
    await page.addInitScript(() => {
      globalThis.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(event.violatedDirective));
    });
    if (clock) await page.clock.install();
    pages.set(number, { context, page, complaints });
    await page.goto(url, { waitUntil: "commit" });
    return number;
  },

  // Waits until the expression is true; fails with its last value.
  async until({ page, script, timeout = 15000 }) {
    const deadline = Date.now() + timeout;
    let last;
    for (;;) {
      try {
        last = await page.evaluate(script);
      } catch (error) {
        last = String(error); // during a navigation
      }
      if (last === true) return true;
      if (Date.now() > deadline) {
        const seen = await page.evaluate("document.body.innerText").catch(String);
        throw new Error(`not within ${timeout} ms: ${script}\nfound ${JSON.stringify(last)}; the page:\n${seen.slice(0, 3000)}`);
      }
      await pause(POLL);
    }
  },

  evaluate: ({ page, script }) => page.evaluate(script),
  press: ({ page, key }) => page.keyboard.press(key),
  type: ({ page, text }) => page.keyboard.type(text),
  click: ({ page, selector }) => page.click(selector),
  hover: ({ page, selector }) => page.hover(selector),
  check: ({ page, selector }) => page.check(selector, { force: true }),
  fill: ({ page, selector, text }) => page.fill(selector, text),
  resize: ({ page, width, height }) => page.setViewportSize({ width, height }),
  media: ({ page, scheme }) => page.emulateMedia({ colorScheme: scheme }),
  reload: ({ page }) => page.reload({ waitUntil: "commit" }),
  pass: ({ page, milliseconds }) => page.clock.fastForward(milliseconds),
  screenshot: ({ page, path, full = true }) => page.screenshot({ path, fullPage: full }),
  goto: ({ page, url }) => page.goto(url, { waitUntil: "commit" }),

  // Lists violations of the accessibility rules WCAG 2.2 AA.
  async audit({ page }) {
    await page.evaluate(axe);
    const found = await page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})");
    return found.violations.map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.target).join(", ").slice(0, 200)}`);
  },

  async complaints({ page, found }) {
    const violations = await page.evaluate("globalThis.violations ?? []");
    return found.splice(0).concat(violations.map((directive) => `policy: ${directive}`));
  },

  async close({ page, number }) {
    await page.context().close();
    pages.delete(number);
  },
};

async function obey(line) {
  const { do: name, page: number, ...rest } = JSON.parse(line);
  const held = pages.get(number);
  const answer = await commands[name]({ ...rest, number, page: held?.page, found: held?.complaints });
  return answer === undefined || typeof answer === "object" && !Array.isArray(answer) && Buffer.isBuffer(answer) ? null : answer;
}

if (existsSync(socket)) unlinkSync(socket);
const server = createServer((client) => {
  server.close();
  let turn = Promise.resolve();
  createInterface({ input: client }).on("line", (line) => {
    turn = turn
      .then(() => obey(line))
      .then((answer) => ({ answer: answer ?? null }))
      .catch((error) => ({ problem: String(error.message ?? error) }))
      .then((reply) => client.write(`${JSON.stringify(reply)}\n`));
  });
  client.on("error", () => {});
  client.on("close", async () => {
    await browser.close().catch(() => {});
    process.exit(0);
  });
});
server.listen(socket);
// End if no client connects.
setTimeout(() => server.listening && process.exit(1), 60000).unref();
