/** Lists that the server gives in pages, newest first or by name: what is read so far, and the way to more. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon, Note } from "../../design/components.js";
import { marketCall } from "../../market/market_calls.js";

/** `path` with its query; null reads nothing. The answer's `Link` has the query of the next page. */
export function usePages(path) {
  const [read, setRead] = useState({ items: null, next: null, error: "" });
  const newest = useRef(0);
  const load = async (address, before = []) => {
    const mine = ++newest.current;
    try {
      const answer = await marketCall(address);
      const items = await answer.json();
      if (mine === newest.current) setRead({ items: [...before, ...items], next: nextOf(answer, address), error: "" });
    } catch (fault) {
      if (mine === newest.current) setRead({ items: before.length ? before : null, next: null, error: fault.message });
    }
  };
  useEffect(() => {
    setRead({ items: null, next: null, error: "" });
    if (path) load(path);
    return () => { newest.current++; };
  }, [path]);
  const replace = (id, item) => setRead((shown) => ({ ...shown, items: shown.items?.flatMap((one) => (one.id !== id ? [one] : item ? [item] : [])) }));
  return { ...read, more: () => load(read.next, read.items), reload: () => load(path), replace };
}

function nextOf(answer, address) {
  const found = /<[^>?]*\?([^>]*)>; *rel="next"/.exec(answer.headers.get("link") ?? "");
  return found && `${address.split("?")[0]}?${found[1]}`;
}

/** `pages` of `usePages`, each item drawn by `children(item)`. */
export function PagedList({ pages, label, empty, keyOf = (one) => one.id, children }) {
  const { items, next, error } = pages;
  return html`<div class="stack" aria-busy=${!items && !error}>
    ${error && html`<${Note} kind="bad" role="alert">${error} <${Button} small icon="refresh-cw" onClick=${pages.reload}>${t("admin.again")}<//><//>`}
    ${!items && !error && html`<div class="admin-waiting" aria-hidden="true"><span></span><span></span><span></span></div>`}
    ${items && !items.length && html`<div class="admin-empty"><${Icon} name="inbox" /><p>${empty}</p></div>`}
    ${Boolean(items?.length) && html`<ul class="admin-list" aria-label=${label}>${items.map((one) => html`<li class="admin-item" key=${keyOf(one)}>${children(one)}</li>`)}</ul>`}
    ${next && html`<div class="row"><${Button} icon="chevron-down" onClick=${pages.more}>${t("admin.more")}<//></div>`}
  </div>`;
}
