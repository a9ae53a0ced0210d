/** Where the buyer is, if he says so: to about 100 m, for this tab only. */

import { signal } from "../../app/view.js";

/** `{ latitude, longitude }`, or null. */
export const near = signal(stored());

export async function locate() {
  const found = await new Promise((resolve, reject) => {
    if (!navigator.geolocation) return reject(new Error("unavailable"));
    navigator.geolocation.getCurrentPosition(resolve, reject, { timeout: 15_000, maximumAge: 300_000 });
  });
  const rounded = (degrees) => Math.round(degrees * 1000) / 1000;
  near.value = { latitude: rounded(found.coords.latitude), longitude: rounded(found.coords.longitude) };
  keep();
}

export function forgetPlace() {
  near.value = null;
  keep();
}

/** As parameters of the API. */
export const nearParameters = () => (near.value ? { user_lat: near.value.latitude, user_lon: near.value.longitude } : {});

function keep() {
  try {
    if (near.value) sessionStorage.setItem("tis.near", JSON.stringify(near.value));
    else sessionStorage.removeItem("tis.near");
  } catch {
    // Storage may be forbidden: the place stays in memory.
  }
}

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem("tis.near") ?? "null");
  } catch {
    return null;
  }
}
