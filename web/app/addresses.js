/** Addresses of this server. All are relative to this file, so pages work behind a proxy that adds a prefix, too. */

export const ROOT = new URL("../../../", import.meta.url);
export const ASSETS = new URL("../", import.meta.url);

/** `path` without a slash in front: "v1/models". */
export function addressOf(path) {
  return new URL(path.replace(/^\//, ""), ROOT).href;
}

export function assetOf(path) {
  return new URL(path, ASSETS).href;
}
