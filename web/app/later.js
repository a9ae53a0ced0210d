/** Parts that a page shows seldom: their modules do not delay its first view. They are read when the page has time. */

import { assetOf } from "./addresses.js";
import { html, useEffect, useState } from "./view.js";

const whenIdle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 500));

let firstView = Promise.resolve();

/** What the page shows first, if that is more than its modules: nothing is read early before it stands. */
export function showFirst(stands) {
  firstView = stands.catch(() => {});
}

/** When the page stands and has time. */
export function afterLoad(work) {
  const wait = () => firstView.then(() => whenIdle(work));
  if (document.readyState === "complete") wait();
  else addEventListener("load", wait, { once: true });
}

/**
 * `read` imports the module and gives the part; `onFailure` is told of an error when the part is wanted. With `early` =
 * false it is read only then.
 */
export function later(read, onFailure, { early = true } = {}) {
  let Part = null;
  const get = async () => { Part ??= await read(); };
  if (early) afterLoad(() => get().catch(() => {}));
  return function Later(props) {
    const [, setReady] = useState(Boolean(Part));
    // Even where there is a Part: it may have come after this was drawn without it.
    useEffect(() => { get().then(() => setReady(true), onFailure); }, []);
    return Part && html`<${Part} ...${props} />`;
  };
}

/** Resolves when the styles of such a part are there; without them it is shown all the same. */
export function loadSheet(path) {
  const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: assetOf(path) });
  document.head.append(sheet);
  return new Promise((resolve) => { sheet.onload = sheet.onerror = () => resolve(); });
}
