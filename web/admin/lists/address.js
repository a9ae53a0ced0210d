/** The address says which part is shown and what it begins with: `#/people?email=sari`. */

import { signal } from "../../app/view.js";

export const PARTS = ["overview", "suppliers", "cards", "flagged", "reviews", "messages", "words", "people", "requests", "audit"];

function placeOf(hash) {
  const [, name, query] = /^#?\/?([^?]*)\??(.*)$/.exec(hash);
  return { part: PARTS.includes(name) ? name : PARTS[0], query: Object.fromEntries(new URLSearchParams(query)) };
}

export const place = signal(placeOf(location.hash));

export function hashOf(part, query = {}) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return given.size ? `#/${part}?${given}` : `#/${part}`;
}

addEventListener("hashchange", () => { place.value = placeOf(location.hash); });
