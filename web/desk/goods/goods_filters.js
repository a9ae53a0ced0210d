/** Which goods are shown, and in which order. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Icon } from "../../design/components.js";
import { categories } from "../../market/categories.js";
import { ask, asked, SHOWS, SORTS } from "./goods_list.js";

const WAIT_MILLISECONDS = 250;

export function GoodsFilters() {
  const { q, show, category, sort } = asked.value;
  const [text, setText] = useState(q);
  const waiting = useRef(null);
  useLayoutEffect(() => { setText(q); }, [q]);
  useEffect(() => () => clearTimeout(waiting.current), []);
  const type = (event) => {
    const typed = event.target.value;
    setText(typed);
    clearTimeout(waiting.current);
    waiting.current = setTimeout(() => ask({ q: typed }), WAIT_MILLISECONDS);
  };
  const isDeleted = show === "deleted";
  const select = (name, value, options) => html`<label class="goods-filter"><span class="visually-hidden">${t(`goods.filter.${name}`)}</span><select class="select" name=${name} value=${value} onChange=${(event) => ask({ [name]: event.target.value })}>
    ${options.map(([key, label]) => html`<option value=${key} selected=${key === value}>${label}</option>`)}</select></label>`;
  return html`<div class="goods-filters" role="search">
    <label class="goods-search"><span class="visually-hidden">${t("goods.search")}</span><${Icon} name="search" /><input class="input" type="search" placeholder=${t("goods.search")} value=${text} maxlength="100" disabled=${isDeleted} onInput=${type} /></label>
    ${select("show", show, SHOWS.map((name) => [name, t(`goods.show.${name}`)]))}
    ${!isDeleted && select("category", category, [["", t("goods.category.any")], ...categories().map((one) => [one.slug, one.name])])}
    ${!isDeleted && select("sort", sort, SORTS.map((name) => [name, t(`goods.sort.${name}`)]))}
  </div>`;
}
