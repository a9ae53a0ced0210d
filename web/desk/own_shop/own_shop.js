/** The shops that somebody works for, and the one that the desk shows. On an open server of one's own these are all. */

import { readChoice, writeChoice } from "../../app/choices.js";
import { computed, signal } from "../../app/view.js";
import { account, isOpen } from "../../market/account.js";
import { marketJson, tokens } from "../../market/market_calls.js";

const NAME = "desk.shop";
const MAX_SHOPS = 100;

/** `[{ id, business_name, city, role, ... }]`; undefined before they are known. */
export const shops = signal(undefined);
export const shopsFault = signal(null);
const chosen = signal(Number(readChoice(NAME)) || null);

/** The one that is shown; null without any. */
export const ownShop = computed(() => shops.value?.find((one) => one.id === chosen.value) ?? shops.value?.[0] ?? null);

export function chooseShop(id) {
  chosen.value = id;
  writeChoice(NAME, String(id));
}

export async function learnShops() {
  shopsFault.value = null;
  try {
    shops.value = await readShops();
  } catch (error) {
    shopsFault.value = error;
  }
}

/** The token of the registration is not needed: who is signed in owns the shop, and an open server asks for none. */
export async function registerShop(given) {
  const { id } = await marketJson("api/suppliers/register", { method: "POST", json: given });
  chooseShop(id);
  await learnShops();
}

async function readShops() {
  const who = account.value;
  if (isOpen && !tokens.value) return (await marketJson(`api/suppliers?limit=${MAX_SHOPS}`)).map((shop) => ({ ...shop, role: "owner" }));
  // The token may be older than what its account works for.
  const { id, kind, suppliers } = who ? await marketJson("api/auth/me") : { suppliers: [] };
  const works = kind === "supplier" ? [{ supplier_id: id, role: "owner" }] : suppliers.slice(0, MAX_SHOPS);
  const found = await Promise.all(works.map(({ supplier_id: shop, role }) => marketJson(`api/suppliers/${shop}`).then((read) => ({ ...read, role }), closedAsNull)));
  return found.filter(Boolean);
}

/** A shop that was closed is nobody's any more. */
function closedAsNull(error) {
  if (error.status === 404) return null;
  throw error;
}
