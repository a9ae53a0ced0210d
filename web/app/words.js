/** The language of the page. `t("chat.send")` is a message; `{name}` in it is filled in. Pages add their own messages. */

import en from "../messages/en/common.js";
import id from "../messages/id/common.js";
import { computed, signal } from "./view.js";
import { readChoice, writeChoice } from "./choices.js";

const MESSAGES = { en: { ...en }, id: { ...id } };
export const LANGUAGES = { en: "English", id: "Bahasa Indonesia" };

export const language = signal(firstLanguage());

export function setLanguage(code) {
  language.value = code;
  writeChoice("language", code);
  document.documentElement.lang = code;
}

/** What a page says, by language. Before it is first drawn. */
export function learnWords(...messages) {
  for (const added of messages) for (const code of Object.keys(LANGUAGES)) Object.assign(MESSAGES[code], added[code]);
}

/** A missing message shows its name, which a test looks for. */
export function t(name, values = {}) {
  const message = MESSAGES[language.value][name] ?? MESSAGES.en[name] ?? name;
  return message.replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? `{${key}}`));
}

/** A message with `{number}` in it; "NAME.one" has what stands for one where a language has a form for that. */
export function counted(name, number, values = {}) {
  const form = formats.value.plural.select(number) === "one" && has(`${name}.one`) ? `${name}.one` : name;
  return t(form, { number: formatNumber(number), ...values });
}

/** The message of a code of the server, or `otherwise` for one that a newer server may send. */
export function wordOr(name, otherwise, values) {
  return has(name) ? t(name, values) : otherwise;
}

/** Whether there is such a message, as for codes that a newer server may send. */
export function has(name) {
  return name in MESSAGES.en;
}

const formats = computed(() => ({
  short: new Intl.NumberFormat(language.value, { notation: "compact", maximumFractionDigits: 1 }),
  plural: new Intl.PluralRules(language.value),
  time: new Intl.DateTimeFormat(language.value, { hour: "2-digit", minute: "2-digit" }),
  day: new Intl.DateTimeFormat(language.value, { day: "numeric", month: "long", year: "numeric" }),
}));

export const formatNumber = (value, digits = 0) => Number(value).toLocaleString(language.value, { maximumFractionDigits: digits, minimumFractionDigits: digits });
export const formatShort = (value) => formats.value.short.format(value);
export const formatRupiah = (value) => `Rp ${formatNumber(value)}`;
export const formatTime = (date) => formats.value.time.format(date);
export const formatDay = (date) => formats.value.day.format(date);

export function formatBytes(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let power = 0;
  for (; bytes >= 1000 && power < units.length - 1; power++) bytes /= 1000;
  return `${formatNumber(bytes, power && bytes < 10 ? 1 : 0)} ${units[power]}`;
}

/** `12 s` in the unit's abbreviation of the language: unit is "ms", "s", "min" or "h". */
export const formatTimeSpan = (value, unit, digits = 0) => `${formatNumber(value, digits)} ${t(`unit.${unit}`)}`;

/** Seconds as people say them: "0.35 s", "12 s", "3 min 20 s", "2 h 5 min". */
export function formatSeconds(given) {
  if (given < 9.95) return formatTimeSpan(given, "s", given < 1 ? 2 : 1);
  const seconds = Math.round(given);
  if (seconds < 60) return formatTimeSpan(seconds, "s");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${formatTimeSpan(minutes, "min")} ${formatTimeSpan(seconds % 60, "s")}`;
  return `${formatTimeSpan(Math.floor(minutes / 60), "h")} ${formatTimeSpan(minutes % 60, "min")}`;
}

function firstLanguage() {
  const wished = [readChoice("language"), ...navigator.languages.map((code) => code.slice(0, 2))];
  // Old browsers call Indonesian "in".
  const found = wished.map((code) => (code === "in" ? "id" : code)).find((code) => code in MESSAGES) ?? "en";
  document.documentElement.lang = found;
  return found;
}
