// SPDX-License-Identifier: Apache-2.0
//
// Formats times, sizes and texts from other users. Pure.

// Invisible characters, and characters that change the direction of text. The two joiners are allowed:
// scripts and emoji need them, and alone they do no harm.
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;
const LONGEST_TITLE = 4096;

function nameOfUnseen(character) {
  const code = character.codePointAt(0);
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`;
}

// Returns the text with invisible characters escaped.
export function plain(text) {
  return String(text ?? "").replace(UNSEEN, nameOfUnseen);
}

// Returns at most `most` characters. The last one is … if the text was cut.
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

// Formats seconds in two units at most; unknown is a dash.
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

// Formats an estimate in seconds, rounded.
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

// Formats milliseconds since 1970 as the local time of day.
export function clock(time) {
  return isNumber(time) ? clockForm.format(time) : "–";
}

export function shortClock(time) {
  return isNumber(time) ? shortClockForm.format(time) : "–";
}

// Formats the local time of day, with the weekday if it is more than half a day away.
export function moment(time, now) {
  if (!isNumber(time)) return "–";
  return Math.abs(now - time) < DAY / 2 ? clockForm.format(time) : dayForm.format(time);
}

// Parses a time of a document into milliseconds; null: there is none.
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

// Formats used and total size in the unit of the total.
export function sizeOf(used, total) {
  if (!isNumber(total)) return isNumber(used) ? `${size(used)} of an unknown size` : "unknown";
  const [unit, name] = unitFor(total);
  return `${isNumber(used) ? inUnits(used, unit) : "–"} / ${inUnits(total, unit)} ${name}`;
}

// Returns the model without its vendor, which the id names already.
export function model(name) {
  return plain(name ?? "").replace(/^(NVIDIA|AMD|Intel\(R\)|Intel|Apple) (?=.)/, "") || "unknown model";
}
