/** What the shop says of itself, as its owners read and change it. */

import { signal } from "../../app/view.js";
import { marketJson } from "../../market/market_calls.js";
import { learnShops } from "../own_shop/own_shop.js";

/** The whole supplier, with its private fields for owners; null while it is read. */
export const profile = signal(null);
export const fault = signal(null);

export async function readProfile(id) {
  try {
    profile.value = await marketJson(`api/suppliers/${id}`);
    fault.value = null;
  } catch (error) {
    fault.value = error;
  }
}

/** A shop that somebody else changed meanwhile is a 412: then it is read anew, and the change is to be made again. */
export async function change(changes) {
  const { id, version } = profile.value;
  try {
    profile.value = { ...profile.value, ...(await marketJson(`api/suppliers/${id}`, { method: "PUT", json: { ...changes, version } })) };
  } catch (error) {
    if (error.status === 412) await readProfile(id);
    throw error;
  }
  await learnShops();
}
