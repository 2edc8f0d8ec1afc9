// SPDX-License-Identifier: Apache-2.0
//
// Functions that change the page. Text is inserted as text, never as markup. Nodes that have not
// changed are not touched.

import { cut, plain, plainTitle } from "./text.js";

export function byId(id) {
  return document.getElementById(id);
}

export function make(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

export function makeSvg(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Sets an attribute; null removes it.
export function setAttribute(node, name, value) {
  if (value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

export function setClass(node, name, wanted) {
  if (node.classList.contains(name) !== wanted) node.classList.toggle(name, wanted);
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

// Sets a text that another user wrote: made plain, isolated from the text around it, and with the
// whole text in the title.
export function setOthersText(node, text, most = 60) {
  const whole = plain(text);
  const shown = cut(whole, most);
  setText(node, shown);
  setAttribute(node, "title", shown === whole && whole.length < 24 ? null : plainTitle(text));
}

export function makeOthersText(className = "") {
  return make("bdi", className);
}

// Returns a hash of a name.
function hash(name) {
  let number = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) number = Math.imul(number ^ name.charCodeAt(i), 0x01000193) >>> 0;
  return (number ^ (number >>> 15)) >>> 0;
}

const HUES = 20;
const MOST_USERS = 1000;
const hues = new Map(); // user: hue

// Returns the hue of a user: derived from the name, or the next free hue if another user has that one.
function hueOf(user) {
  if (hues.has(user)) return hues.get(user);
  if (hues.size >= MOST_USERS) hues.clear();
  const taken = new Set(hues.values());
  let number = hash(user) % HUES;
  // Steps of 7 reach all 20 hues and give colours that differ clearly.
  for (let tries = 0; taken.has(number) && tries < HUES; tries++) number = (number + 7) % HUES;
  hues.set(user, number);
  return number;
}

// Sets the colour of a user.
export function setUserColour(node, user) {
  const hue = String(hueOf(user ?? "") * (360 / HUES));
  if (node.style.getPropertyValue("--hue") !== hue) node.style.setProperty("--hue", hue);
}

const lists = new WeakMap();

// Makes the children of `parent` match `items` in their order. Nodes are created for new keys, moved,
// and removed. A part is {node, update(item, ...context)}.
export function setList(parent, items, keyOf, makePart, ...context) {
  const old = lists.get(parent) ?? new Map();
  const parts = new Map();
  let next = parent.firstElementChild;

  for (const item of items) {
    const key = keyOf(item);
    if (parts.has(key)) continue;
    const part = old.get(key) ?? makePart(item);
    parts.set(key, part);
    part.update(item, ...context);
    if (part.node === next) next = next.nextElementSibling;
    else parent.insertBefore(part.node, next);
  }
  for (const [key, part] of old) if (!parts.has(key)) part.node.remove();
  lists.set(parent, parts);
  return parts;
}
