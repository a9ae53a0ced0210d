/** Light, dark, or as the system says. */

import { effect, signal } from "./view.js";
import { readChoice, writeChoice } from "./choices.js";

export const THEMES = ["system", "light", "dark"];
export const theme = signal(readChoice("theme", "system"));

export function setTheme(name) {
  theme.value = name;
  writeChoice("theme", name === "system" ? null : name);
}

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});
