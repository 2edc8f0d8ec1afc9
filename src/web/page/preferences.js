// SPDX-License-Identifier: Apache-2.0
//
// The choices of the user, kept in the local storage of the browser.

export function read(name, fallback, allowed) {
  let value = null;
  try {
    value = localStorage.getItem(`berth.${name}`);
  } catch {
    // Storage may be forbidden: the default applies.
  }
  return allowed.includes(value) ? value : fallback;
}

export function keep(name, value) {
  try {
    localStorage.setItem(`berth.${name}`, value);
  } catch {
    // Storage may be forbidden or full.
  }
}

// Keeps the choice of the radio buttons named `name`. Returns a function that returns the choice.
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
