// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for berth web with an invented pool. It shows the page in states that no machine at hand
// has, and makes the picture in the documents.
//
//     node tests/page/made_up_pool.mjs [lab|rack|states|empty|quiet] [PORT]

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const PAGE = new URL("../../src/web/page/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8" };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const GIB = 1024 ** 3;
const MINUTE = 60000;
const HOUR = 60 * MINUTE;
const SAMPLES = 300;

const time = (at) => new Date(at).toISOString();
const wave = (at, seed, slow) => Math.sin(at / slow + seed * 1.7) * 0.5 + Math.sin(at / (slow * 0.37) + seed) * 0.3;

// Pseudo-random numbers, the same every time.
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function device(index, name, memory, facts = {}) {
  return {
    id: `nvidia${index}`, slot: index, vendor: "nvidia", index, name, kind: "discrete", uuid: `GPU-${index}`,
    pci: `0000:${(7 + 8 * index).toString(16).padStart(2, "0")}:00.0`, parent: null, memory_total: memory, memory_free: memory,
    cap: "8.0", numa: index >> 1, cpus: null, tiles: null, utilization: 0, temperature_c: 31, power_w: 58, frequency_hz: null,
    health: "ok", health_reason: null, asleep: false, old: false, sampled_at: null, nodes: [], processes: [],
    leased: false, sharing: null, state: "free", leases: [], squatters: [], lingering: [], drain: null, ...facts,
  };
}

function lease(id, user, name, command, devices, age, facts = {}) {
  const now = Date.now();
  return {
    id, name, user, uid: 1000 + user.length, pid: 40000 + id, command, replicas: 1, sharing: "exclusive", priority: "normal",
    devices: devices.map((index) => ({ id: `nvidia${index}`, share: 1, memory: null, ...facts.part })), opportunistic: false,
    claimed_at: time(now - age - 4 * MINUTE), granted_at: time(now - age), expires_at: null, idle_s: 0, idle_warned: false,
    adopted: false, preparing: false, draining: false, ending: null, force_at: null, parent: null, ...facts,
  };
}

function claim(id, position, user, name, request, age, why, estimate, facts = {}) {
  return {
    id, position, name, user, uid: 1000, pid: 50000 + id, command: "python", request, priority: "normal", opportunistic: false,
    since: time(Date.now() - age), why, estimate_s: estimate, parent: null, ...facts,
  };
}

function lab() {
  const devices = Array.from({ length: 8 }, (_, index) => device(index, "NVIDIA A100-SXM4-80GB", 80 * GIB));
  const now = Date.now();
  const leases = [
    lease(412, "ada", "llama-finetune", "torchrun train.py", [0, 1], 3.2 * HOUR, { expires_at: time(now + 1.8 * HOUR) }),
    lease(431, "grace", "vit-ablation-3", "python ablate.py --seed 3", [2], 41 * MINUTE, { expires_at: time(now + 8 * MINUTE) }),
    lease(433, "linus", null, "jupyter lab", [3], 2.4 * HOUR, { idle_s: 1500, idle_warned: true }),
    lease(436, "margaret", "embed-serve", "python serve.py", [4], 5.1 * HOUR, { sharing: "mps", part: { share: 0.5, memory: 40 * GIB } }),
    lease(440, "margaret", "rerank", "python rerank.py", [4], 25 * MINUTE, { sharing: "mps", part: { share: 0.25, memory: 20 * GIB } }),
    lease(441, "barbara", "whisper-batch", "python transcribe.py", [5], 12 * MINUTE, { opportunistic: true }),
  ];
  const loads = [0.94, 0.91, 0.72, 0.02, 0.55, 0.83, 0.38, 0];
  for (const held of leases) {
    for (const part of held.devices) {
      const found = devices.find((candidate) => candidate.id === part.id);
      Object.assign(found, { leased: true, sharing: held.sharing, state: held.sharing === "mps" ? "shared" : "leased" });
      found.leases.push(held.id);
    }
  }
  Object.assign(devices[6], {
    state: "squatted",
    squatters: [{ pid: 31337, user: "dennis", uid: 1007, command: "python notebook_kernel.py", container: null, since: time(now - HOUR) }],
  });
  const queue = [
    claim(442, 1, "katherine", "orbit-sweep", "4 devices, for at most 6h", 22 * MINUTE, "needs 4, 1 free: ada holds 2, grace holds 1, other users hold 3, 1 is used without a lease", 6500),
    claim(443, 2, "grace", "vit-ablation-4", "1 device, 40GiB free, for at most 1h", 9 * MINUTE, "needs 1: ada holds 2, grace holds 1, other users hold 3, 1 is used without a lease, 1 is kept for earlier claims; 1 claim is before it", 480),
    claim(445, 3, "alan", null, "2 devices", 3 * MINUTE, "needs 2: ada holds 2, grace holds 1, other users hold 3, 1 is used without a lease, 1 is kept for earlier claims; 2 claims are before it", null, { command: "./enigma --all" }),
  ];
  return { name: "lab", devices, leases, queue, pending: 3, problems: [], loads, memory: [0.86, 0.84, 0.52, 0.11, 0.71, 0.44, 0.29, 0.005] };
}

function rack() {
  const random = numbers(7);
  const users = ["ada", "grace", "linus", "margaret", "barbara", "katherine", "alan", "dennis", "edsger", "radia"];
  const devices = Array.from({ length: 64 }, (_, index) => device(index, "NVIDIA H100 80GB HBM3", 80 * GIB));
  const leases = [];
  for (let index = 0; index < 64; ) {
    const wide = [1, 1, 2, 4, 8][Math.floor(random() * 5)];
    const held = Array.from({ length: Math.min(wide, 64 - index) }, (_, i) => index + i);
    if (random() < 0.8) leases.push(lease(500 + index, users[Math.floor(random() * 10)], `job-${index}`, "python train.py", held, random() * 20 * HOUR));
    index += wide;
  }
  for (const held of leases) for (const part of held.devices) Object.assign(devices.find((one) => one.id === part.id), { leased: true, state: "leased" });
  Object.assign(devices[17], { state: "sick", health: "sick", health_reason: "XID 79: GPU has fallen off the bus", utilization: null });
  Object.assign(devices[40], { state: "drained", drain: { reason: "fan replacement", user: "root", since: time(Date.now() - HOUR) } });
  const queue = Array.from({ length: 60 }, (_, i) => claim(900 + i, i + 1, users[i % 10], `sweep-${i}`, "8 devices", (60 - i) * MINUTE, "needs 8: ada holds 8 (2h left), grace holds 4", i < 4 ? 1200 * (i + 1) : null));
  return { name: "rack", devices, leases, queue, pending: 87, problems: [], loads: devices.map((one) => (one.leased ? random() : 0)), memory: devices.map(() => random()) };
}

function states() {
  const now = Date.now();
  const some = [
    {}, { state: "leased" }, { state: "shared" },
    { state: "draining", drain: { reason: "new driver", user: "root", since: time(now - 9 * MINUTE) }, lingering: [{ pid: 4711, user: "ada", uid: 1001, command: "python train.py", container: null }] },
    { state: "drained", drain: { reason: "fan is loud", user: "root", since: time(now - 40 * HOUR) } },
    { state: "sick", health: "sick", health_reason: "XID 79: GPU has fallen off the bus", utilization: null, memory_free: null, temperature_c: null, power_w: null },
    { state: "squatted", squatters: [{ pid: 31337, user: "dennis", uid: 1007, command: "python notebook_kernel.py --x ".repeat(9), container: "podman 3fc1" }, { pid: 31400, user: null, uid: null, command: null, container: null }] },
    { state: "elsewhere" }, { state: "asleep", asleep: true, utilization: null, temperature_c: null, power_w: null, memory_free: null }, { state: "gone", utilization: null },
    { name: null, memory_total: null, memory_free: null, utilization: null, temperature_c: null, power_w: null },
    { temperature_c: 93, power_w: 401, utilization: 1 },
  ];
  const devices = some.map((facts, index) => device(index, "NVIDIA RTX A6000", 48 * GIB, facts));
  const hostile = "<img src=x onerror=alert(1)>\u202egnp.exe\u0007 " + "long ".repeat(60);
  const leases = [
    lease(1, hostile, hostile, hostile, [1], 3 * HOUR),
    ...[0.25, 0.25, 0.1].map((share, i) => lease(2 + i, `user${i}`, `slice-${i}`, "x", [2], i * HOUR, { sharing: "time-slice", part: { share, memory: null } })),
  ];
  const queue = [claim(9, 1, hostile, hostile, "1 device", MINUTE, hostile, null)];
  return { name: "states", devices, leases, queue, pending: 1, problems: [{ backend: "history", message: "cannot write /var/lib/berth/history.db: no space left" }], loads: devices.map(() => 0.4), memory: devices.map(() => 0.3) };
}

const empty = () => ({ name: "empty", devices: [], leases: [], queue: [], pending: 0, problems: [], loads: [], memory: [] });
const quiet = () => ({ ...empty(), name: "quiet", devices: [device(0, "NVIDIA GeForce RTX 4090", 24 * GIB)], loads: [0], memory: [0.02] });
const POOLS = { lab, rack, states, empty, quiet };

function past(pool) {
  const random = numbers(42);
  const people = [["ada", "llama-pretrain"], ["grace", "vit-ablation"], ["linus", null], ["katherine", "orbit-sweep"], ["alan", "enigma"], ["barbara", "whisper-batch"], ["edsger", "shortest-path"]];
  const leases = [];
  const now = Date.now();
  const busyUntil = new Map();
  for (const held of pool.leases) for (const part of held.devices) busyUntil.set(part.id, Math.min(busyUntil.get(part.id) ?? Infinity, Date.parse(held.granted_at)));
  if (pool.name === "empty" || pool.name === "quiet") return leases;
  for (const one of pool.devices) {
    let at = (busyUntil.get(one.id) ?? now - 20 * MINUTE) - random() * 12 * MINUTE;
    while (at > now - 24 * HOUR) {
      const held = random() < 0.3 ? (2 + random() * 6) * MINUTE : (0.3 + random() * 2.8) * HOUR;
      const [user, name] = people[Math.floor(random() * people.length)];
      const died = random() < 0.12;
      leases.push({
        id: 400 - leases.length, name: name && `${name}-${Math.ceil(random() * 9)}`, user, command: "python train.py", devices: [one.id], waited_s: Math.floor(random() * 900),
        held_s: held / 1000, granted_at: time(at - held), ended_at: time(at), end: died ? "died" : "released", exit_code: died ? 137 : 0,
      });
      at -= held + (random() < 0.5 ? random() * 8 : random() * 70) * MINUTE;
    }
  }
  return leases.sort((one, other) => (one.granted_at < other.granted_at ? 1 : -1));
}

function report(leases, pool, hours) {
  const rows = new Map();
  const now = Date.now();
  const add = (user, from, to, share) => {
    const row = rows.get(user) ?? { key: user, leases: 0, gpu_hours: 0, waited_s: 0, idle_share: (user.length * 7 % 23) / 100 };
    row.leases += 1;
    row.gpu_hours += (Math.max(0, Math.min(to, now) - Math.max(from, now - hours * HOUR)) / HOUR) * share;
    rows.set(user, row);
  };
  for (const one of leases) add(one.user, Date.parse(one.granted_at), Date.parse(one.ended_at), one.devices.length);
  for (const one of pool.leases) add(one.user, Date.parse(one.granted_at), now, one.devices.reduce((sum, part) => sum + part.share, 0));
  return { schema: "berth.report/1", by: "user", rows: [...rows.values()].filter((row) => row.gpu_hours > 0) };
}

// Training runs at full load and pauses to save; serving follows its requests.
function shape(level, at, index) {
  const noise = numbers(Math.floor(at / 2000) * 31 + index * 977);
  noise();
  const jitter = noise() - 0.5;
  if (level < 0.03) return noise() < 0.06 ? noise() * 0.12 : 0;
  const saves = level > 0.65 && (at / 1000 + index * 29) % 97 < 7;
  const swing = level > 0.65 ? 0.05 : 0.3;
  const value = saves ? 0.12 + noise() * 0.2 : level + wave(at, index, 17000) * swing + jitter * (level > 0.65 ? 0.07 : 0.16);
  return Math.min(1, Math.max(0.01, value));
}

function loadAt(pool, at) {
  const devices = pool.devices.map((one, index) => {
    const known = one.utilization !== null && !one.asleep;
    const level = pool.loads[index] ?? 0;
    const load = shape(level, at, index);
    return {
      id: one.id, leased: one.leased, state: one.state, utilization: known ? Number(load.toFixed(3)) : null,
      memory_used: known && one.memory_total ? Math.round(one.memory_total * (pool.memory[index] ?? 0)) : null, memory_total: one.memory_total,
      temperature_c: known ? (one.temperature_c > 80 ? one.temperature_c : 33 + load * 38 + index % 3) : null,
      power_w: known ? (one.power_w > 390 ? one.power_w : 61 + load * 320) : null, sampled_at: time(at), health: one.health, asleep: one.asleep, old: false,
    };
  });
  return { schema: "berth.load/1", time: time(at), devices };
}

function hello(pool) {
  return {
    schema: "berth.hello/1", version: "0.1.0", time: time(Date.now()),
    pool: { capacity: pool.devices.length, pending: pool.pending, socket: "/run/berth/berth.sock", inventory: null, time: time(Date.now()) },
    devices: pool.devices, leases: pool.leases, queue: pool.queue, problems: pool.problems, state: "live",
  };
}

function stream(pool, response, timers) {
  const send = (kind, data) => response.write(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store", "Content-Security-Policy": POLICY });
  send("hello", hello(pool));
  for (let age = SAMPLES; age >= 0; age -= 2) send("load", loadAt(pool, Date.now() - age * 1000));
  const timer = setInterval(() => send("load", loadAt(pool, Date.now())), 1000);
  timers.add(timer);
  response.on("close", () => clearInterval(timer));
}

// Serves a pool of POOLS; resolves to {address, close}.
export async function serve(name, port = 0) {
  const pool = POOLS[name]();
  const leases = past(pool);
  const timers = new Set();
  const json = (response, data) => {
    response.writeHead(200, { "Content-Type": "application/json", "Content-Security-Policy": POLICY });
    response.end(JSON.stringify(data));
  };
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    const hours = Number(searchParams.get("hours") ?? 6);
    if (pathname === "/api/events") return stream(pool, response, timers);
    if (pathname === "/api/status") return json(response, { ...hello(pool), schema: "berth.status/1" });
    if (pathname === "/api/history") return json(response, { schema: "berth.history/1", leases: leases.filter((one) => Date.parse(one.ended_at) > Date.now() - hours * HOUR) });
    if (pathname === "/api/report") return json(response, report(leases, pool, hours));
    const file = pathname === "/" ? "index.html" : pathname.replace(/^\/assets\//, "");
    try {
      const bytes = await readFile(new URL(file.replace(/[^\w.]/g, ""), PAGE));
      response.writeHead(200, { "Content-Type": TYPES[file.split(".").at(-1)] ?? "text/plain", "Content-Security-Policy": POLICY, "Cache-Control": "no-store" });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(port, "127.0.0.1", ready));
  const close = () => {
    for (const timer of timers) clearInterval(timer);
    server.closeAllConnections();
    server.close();
  };
  return { address: `http://127.0.0.1:${server.address().port}/`, close };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { address } = await serve(process.argv[2] ?? "lab", Number(process.argv[3] ?? 7412));
  console.log(address);
}
