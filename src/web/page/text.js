// SPDX-License-Identifier: Apache-2.0
//
// Words for people: times, sizes, and texts that somebody else has written. Pure.

// Characters that nobody sees, or that turn others round. The two joiners are left out: scripts and
// emoji need them, and alone they do no harm.
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;
const LONGEST_TITLE = 4096;

function nameOfUnseen(character) {
  const code = character.codePointAt(0);
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`;
}

// The text with everything in it seen, and nothing in it that does anything.
export function plain(text) {
  return String(text ?? "").replace(UNSEEN, nameOfUnseen);
}

// At most so many characters of it, the last of them telling that there are more.
export function cut(text, most) {
  if (text.length <= most) return text;
  const characters = Array.from(text.slice(0, 2 * most + 2));
  return characters.length <= most ? text.slice(0, 2 * most) : `${characters.slice(0, most - 1).join("")}…`;
}

export function plainTitle(text) {
  return cut(plain(text), LONGEST_TITLE);
}

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

// Seconds, as two units at most; what is not known is a dash.
export function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const whole = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(whole / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const two = (number) => String(number).padStart(2, "0");
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${two(minutes % 60)} m`;
  if (minutes > 0) return `${minutes} m ${two(whole % 60)} s`;
  return `${whole} s`;
}

// No more exact than an estimate is.
export function roughDuration(seconds) {
  if (!isNumber(seconds) || seconds < 60) return isNumber(seconds) ? "a minute" : "–";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes >= 24 * 60) return duration(seconds);
  return `${Math.floor(minutes / 60)} h${minutes % 60 > 0 ? ` ${minutes % 60} m` : ""}`;
}

const clockForm = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const shortClockForm = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayForm = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });
const DAY = 24 * 3600 * 1000;

// Milliseconds since 1970, as the clock on the wall shows them.
export function clock(time) {
  return isNumber(time) ? clockForm.format(time) : "–";
}

export function shortClock(time) {
  return isNumber(time) ? shortClockForm.format(time) : "–";
}

// With the day, where it was not just now.
export function moment(time, now) {
  if (!isNumber(time)) return "–";
  return Math.abs(now - time) < DAY / 2 ? clockForm.format(time) : dayForm.format(time);
}

// A time of a document as milliseconds; null where there is none.
export function timeOf(text) {
  const time = typeof text === "string" ? Date.parse(text) : NaN;
  return Number.isNaN(time) ? null : time;
}

export function percent(ratio) {
  return isNumber(ratio) ? `${Math.round(ratio * 100)} %` : "–";
}

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

function inUnits(bytes, unit) {
  const number = bytes / unit;
  return number >= 100 || Number.isInteger(number) ? String(Math.round(number)) : number.toFixed(1);
}

function unitFor(bytes) {
  return bytes >= GIB ? [GIB, "GiB"] : [MIB, "MiB"];
}

export function size(bytes) {
  if (!isNumber(bytes)) return "–";
  const [unit, name] = unitFor(bytes);
  return `${inUnits(bytes, unit)} ${name}`;
}

// What is used of a whole, in the whole's unit.
export function sizeOf(used, total) {
  if (!isNumber(total)) return isNumber(used) ? `${size(used)} of an unknown size` : "unknown";
  const [unit, name] = unitFor(total);
  return `${isNumber(used) ? inUnits(used, unit) : "–"} / ${inUnits(total, unit)} ${name}`;
}

// The model without its vendor, which the id names already.
export function model(name) {
  return plain(name ?? "").replace(/^(NVIDIA|AMD|Intel\(R\)|Intel|Apple) (?=.)/, "") || "unknown model";
}
