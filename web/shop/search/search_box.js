/** The field of the search, with suggestions while one types: a combobox of the usual keys. */

import { Button, Icon } from "../../design/components.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { marketJson } from "../../market/market_calls.js";
import { changed, goTo, listHash, productHash } from "../address/place.js";

const WAIT_MILLISECONDS = 120;
const MIN_CHARS = 2;
const MAX_CHARS = 200;
const ICONS = { word: "search", category: "tag", product: "package" };

/** `asked` is the search that is shown. A new text begins a new one. */
export function SearchBox({ asked }) {
  const [text, setText] = useState(asked.q ?? "");
  const [options, setOptions] = useState([]);
  const [at, setAt] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const field = useRef(null);
  const asking = useRef(null);
  useLayoutEffect(() => { setText(asked.q ?? ""); setOpen(false); }, [asked.q]);
  useEffect(() => () => asking.current?.abort(), []);

  const suggest = (typed) => {
    asking.current?.abort();
    const mine = (asking.current = new AbortController());
    setAt(-1);
    if (typed.trim().length < MIN_CHARS) return setOptions([]);
    setTimeout(async () => {
      if (mine.signal.aborted) return;
      const found = await marketJson(`api/products/suggest?${new URLSearchParams({ q: typed.slice(0, 100) })}`, { signal: mine.signal }).catch(() => []);
      if (!mine.signal.aborted) setOptions(found);
    }, WAIT_MILLISECONDS);
  };
  const close = () => { asking.current?.abort(); setOpen(false); setAt(-1); };
  const search = (wanted) => { close(); goTo(listHash(wanted)); };
  const choose = (option) => {
    if (option.kind === "product") { close(); return goTo(productHash(option.product_id)); }
    return search(option.kind === "category" ? { category: option.category } : { q: option.text });
  };
  const submit = (event) => {
    event.preventDefault();
    field.current.blur();
    search(changed({}, { q: text.trim(), sort: text.trim() ? null : asked.sort }));
  };
  const shown = isOpen && options.length > 0;
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown) {
      event.preventDefault();
      const places = options.length + 1; // the field is one
      setAt(((at + 1 + step + places) % places) - 1);
    } else if (event.key === "Escape" && shown) {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && shown && at >= 0) {
      event.preventDefault();
      choose(options[at]);
    }
  };
  return html`<search class="shop-search"><form class="shop-search-form" onSubmit=${submit}>
    <${Icon} name="search" />
    <input ref=${field} class="input" type="search" enterkeyhint="search" maxlength=${MAX_CHARS} autocomplete="off" spellcheck="false" value=${text}
      aria-label=${t("shop.search")} placeholder=${t("shop.search.example")} role="combobox" aria-expanded=${shown} aria-controls=${`${id}-list`} aria-autocomplete="list"
      aria-activedescendant=${shown && at >= 0 ? `${id}-${at}` : undefined} onKeyDown=${onKey} onBlur=${() => setTimeout(() => document.activeElement === field.current || close(), 150)}
      onInput=${(event) => { setText(event.target.value); setOpen(true); suggest(event.target.value); }} />
    <${Button} kind="primary" icon="arrow-up" class="shop-search-go" type="submit" label=${t("shop.search.do")} />
    <ul class="suggestions" id=${`${id}-list`} role="listbox" aria-label=${t("shop.suggestions")} hidden=${!shown}>${options.map((option, number) => html`<li key=${`${option.kind}${option.text}`} id=${`${id}-${number}`}
      role="option" aria-selected=${number === at} class="suggestion" onPointerDown=${(event) => event.preventDefault()} onClick=${() => choose(option)}>
      <${Icon} name=${ICONS[option.kind] ?? "search"} /><span class="grow one-line">${option.text}</span><span class="faint">${t(`shop.suggestion.${option.kind}`)}</span></li>`)}</ul>
  </form></search>`;
}
