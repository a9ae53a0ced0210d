/** What a search has found: the goods, the counts beside them, and what the server says about the search. */

import { batch, signal } from "../../app/view.js";
import { marketJson } from "../../market/market_calls.js";
import { nearParameters } from "../address/near.js";
import { parametersOf } from "../address/place.js";

const PAGE = 24;
const FACETS = "category,brand,city,price";

/** `{ asked, items, total, ... }`: the envelope of the last search that was answered; null before the first. */
export const found = signal(null);
export const facets = signal(null);
/** Which words of the text became which filter: `[{ field, words }]`. */
export const readings = signal([]);
export const isLoading = signal(false);
export const fault = signal(null);

let loading = null;

export async function load(asked) {
  loading?.abort();
  const mine = (loading = new AbortController());
  isLoading.value = true;
  try {
    // All at once: on a slow line each waits as long as the others. The goods do not wait for the counts.
    count(asked, mine.signal).then((counts) => { if (mine === loading) facets.value = counts; });
    const reading = asked.q ? readingsOf(asked.q, mine.signal) : [];
    const page = await search(asked, {}, mine.signal);
    const read = page.understood ? await reading : [];
    if (mine !== loading) return;
    batch(() => {
      found.value = { ...page, asked };
      readings.value = read;
      fault.value = null;
    });
  } catch (error) {
    if (mine === loading && error.name !== "AbortError") fault.value = error;
  } finally {
    if (mine === loading) isLoading.value = false;
  }
}

/** The next page behind what is shown. */
export async function loadMore() {
  const before = found.value;
  if (!before?.next_cursor || isLoading.value) return;
  const mine = loading;
  isLoading.value = true;
  try {
    const page = await search(before.asked, { cursor: before.next_cursor }, mine.signal);
    if (mine === loading) found.value = { ...before, items: [...before.items, ...page.items], next_cursor: page.next_cursor };
  } catch (error) {
    if (mine === loading && error.name !== "AbortError") fault.value = error;
  } finally {
    if (mine === loading) isLoading.value = false;
  }
}

/** The newest goods where nothing is asked for. */
function search(asked, more, signal) {
  const given = { ...nearParameters(), ...asked, ...more };
  if (asked.q) return marketJson(`api/products/search?${parametersOf({ ...given, envelope: 1, limit: PAGE })}`, { signal });
  return marketJson(`api/products?${parametersOf({ sort: "newest", ...given, envelope: 1, limit: PAGE })}`, { signal });
}

/** Counts are an extra: without them the goods are shown all the same. */
function count(asked, signal) {
  const { sort, ...filters } = asked;
  return marketJson(`api/products/facets?${parametersOf({ ...nearParameters(), ...filters, facets: FACETS })}`, { signal }).catch(() => null);
}

function readingsOf(text, signal) {
  return marketJson("api/search/parse", { method: "POST", json: { query: text }, signal }).then((read) => read.explain, () => []);
}
