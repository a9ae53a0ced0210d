/** Parts that a page shows seldom: their modules do not delay its first view. They are read when the page has time. */

import { html, useEffect, useState } from "./view.js";

const whenIdle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 500));

/** `read` imports the module and gives the part; `onFailure` is told of an error when the part is wanted. */
export function later(read, onFailure) {
  let Part = null;
  const get = async () => { Part ??= await read(); };
  addEventListener("load", () => whenIdle(() => get().catch(() => {})), { once: true });
  return function Later(props) {
    const [, setReady] = useState(Boolean(Part));
    useEffect(() => { if (!Part) get().then(() => setReady(true), onFailure); }, []);
    return Part && html`<${Part} ...${props} />`;
  };
}
