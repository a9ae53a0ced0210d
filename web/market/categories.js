/** The names of categories in the language of the page. The search has their slugs. */

import { signal } from "../app/view.js";
import { language } from "../app/words.js";
import { marketJson } from "./market_calls.js";

const names = signal(new Map());

export async function learnCategories() {
  names.value = new Map((await marketJson("api/categories")).map((one) => [one.slug, one]));
}

export function categoryName(slug) {
  return names.value.get(slug)?.[language.value === "id" ? "name_id" : "name_en"] ?? slug;
}
