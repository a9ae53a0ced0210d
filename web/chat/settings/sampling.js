/** The settings of sampling: their ranges, the model's defaults, and the presets. */

import { getJson } from "../../app/api.js";
import { readChoice, writeChoice } from "../../app/choices.js";
import { signal } from "../../app/view.js";

/** `of` is the name that the server's defaults have (those of llama.cpp). */
export const SETTINGS = [
  { name: "temperature", of: "temperature", min: 0, max: 2, step: 0.05, digits: 2 },
  { name: "max_tokens", of: "n_predict", min: 1, max: 32768, isText: true },
  { name: "top_p", of: "top_p", min: 0.01, max: 1, step: 0.01, digits: 2, isMore: true },
  { name: "top_k", of: "top_k", min: 0, max: 200, step: 1, digits: 0, isMore: true },
  { name: "min_p", of: "min_p", min: 0, max: 1, step: 0.01, digits: 2, isMore: true },
  { name: "repetition_penalty", of: "repeat_penalty", min: 0.5, max: 2, step: 0.05, digits: 2, isMore: true },
  { name: "presence_penalty", of: "presence_penalty", min: -2, max: 2, step: 0.1, digits: 1, isMore: true },
  { name: "frequency_penalty", of: "frequency_penalty", min: -2, max: 2, step: 0.1, digits: 1, isMore: true },
  { name: "seed", min: 0, max: 4294967295, isText: true, isMore: true },
];
export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"];

/** What a preset does not name goes back to the model's default. */
const NOTHING = Object.fromEntries(SETTINGS.filter(({ name }) => name !== "seed" && name !== "max_tokens").map(({ name }) => [name, null]));
export const PRESETS = {
  precise: { ...NOTHING, temperature: 0 },
  balanced: { ...NOTHING, temperature: 0.7, top_p: 0.9 },
  creative: { ...NOTHING, temperature: 1.1, top_p: 0.95, min_p: 0.05 },
  code: { ...NOTHING, temperature: 0.2, top_p: 0.95 },
};
const MAX_OWN = 12;
const MAX_NAME = 40;

/** [{ name, values }] */
export const ownPresets = signal(readList("presets"));
/** [{ name, text }] */
export const systemPrompts = signal(readList("prompts"));

export function isPreset(settings, values) {
  return Object.entries(values).every(([name, value]) => (settings[name] ?? null) === (value ?? null));
}

export function savePreset(name, settings) {
  const values = Object.fromEntries(Object.keys(NOTHING).map((key) => [key, settings[key] ?? null]));
  ownPresets.value = keep("presets", ownPresets.value, { name: name.trim().slice(0, MAX_NAME), values });
}

export function deletePreset(name) {
  ownPresets.value = drop("presets", ownPresets.value, name);
}

export function savePrompt(name, text) {
  systemPrompts.value = keep("prompts", systemPrompts.value, { name: name.trim().slice(0, MAX_NAME), text });
}

export function deletePrompt(name) {
  systemPrompts.value = drop("prompts", systemPrompts.value, name);
}

/** The newest first; one of the same name is replaced, the oldest goes. */
function keep(store, list, one) {
  const kept = [one, ...list.filter((other) => other.name !== one.name)].slice(0, MAX_OWN);
  writeChoice(store, JSON.stringify(kept));
  return kept;
}

function drop(store, list, name) {
  const kept = list.filter((other) => other.name !== name);
  writeChoice(store, kept.length ? JSON.stringify(kept) : null);
  return kept;
}

function readList(store) {
  try {
    const list = JSON.parse(readChoice(store, "[]"));
    return Array.isArray(list) ? list.slice(0, MAX_OWN) : [];
  } catch {
    return [];
  }
}

/** The defaults of a model by our names, and its context as `max_model_len`; empty if the server does not say. */
export async function defaultsOf(id) {
  try {
    const { default_generation_settings: given } = await getJson(`props?model=${encodeURIComponent(id)}`, { ask: false });
    return Object.fromEntries(SETTINGS.filter((one) => one.of).map((one) => [one.name, given.params[one.of]]));
  } catch {
    return {};
  }
}

/** What is wrong with a number that somebody typed: "whole", "range", or null. */
export function faultOf(setting, text) {
  if (text.trim() === "") return null;
  if (!/^-?\d{1,15}$/.test(text.trim())) return "whole"; // 2.000 is two thousand to some, and two to others
  const value = Number(text);
  return value < setting.min || value > setting.max ? "range" : null;
}
