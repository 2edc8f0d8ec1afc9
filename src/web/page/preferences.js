// SPDX-License-Identifier: Apache-2.0
//
// What the reader has chosen, kept by the browser where it lets us.

export function read(name, fallback, allowed) {
  let value = null;
  try {
    value = localStorage.getItem(`berth.${name}`);
  } catch {
    // Storage may be forbidden; then nothing is kept.
  }
  return allowed.includes(value) ? value : fallback;
}

export function keep(name, value) {
  try {
    localStorage.setItem(`berth.${name}`, value);
  } catch {
    // As above.
  }
}

// A group of radio buttons named `name`: what is chosen in it is kept. Returns how to ask for it.
export function chooser(name, fallback, changed) {
  const buttons = [...document.querySelectorAll(`input[name="${name}"]`)];
  const allowed = buttons.map((button) => button.value);
  let chosen = read(name, fallback, allowed);

  for (const button of buttons) {
    button.checked = button.value === chosen;
    button.addEventListener("change", () => {
      chosen = button.value;
      keep(name, chosen);
      changed(chosen);
    });
  }
  changed(chosen);
  return () => chosen;
}
