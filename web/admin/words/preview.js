/** What a change of words would do to ten searches: the numbers of each, and which goods come, go and move. */

import { html } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";
import { Badge, Icon, Note } from "../../design/components.js";

export function SearchPreview({ preview }) {
  const changed = preview.queries.filter((one) => isChanged(one)).length;
  return html`<section class="stack" aria-label=${t("admin.preview")}>
    <${Note} kind=${changed ? "info" : "warn"} role="status">${t(changed ? "admin.preview.changed" : "admin.preview.same", { number: changed, of: preview.queries.length })}<//>
    <ul class="preview-list">${preview.queries.map((one) => html`<li key=${one.query}><${PreviewedQuery} one=${one} names=${preview.names} /></li>`)}</ul>
  </section>`;
}

const totalOf = ({ total, total_is_exact }) => `${formatNumber(total)}${total_is_exact ? "" : "+"}`;
const isChanged = ({ before, after, came, went, moved }) => before.total !== after.total || Boolean(came.length || went.length || moved.length);

function PreviewedQuery({ one, names }) {
  const head = html`<span class="grow one-line preview-query">${one.query}</span>
    <span class="numbers" title=${t("admin.preview.found")}>${totalOf(one.before)}${isChanged(one) ? html` <${Icon} name="arrow-right" label=${t("admin.preview.becomes")} /> <strong>${totalOf(one.after)}</strong>` : ""}</span>`;
  if (!isChanged(one)) return html`<div class="preview-row soft">${head}<${Badge}>${t("admin.preview.unchanged")}<//></div>`;
  return html`<details class="preview-details"><summary class="preview-row">${head}
      ${Boolean(one.came.length) && html`<${Badge} kind="good" icon="plus">${t("admin.preview.came", { number: one.came.length })}<//>`}
      ${Boolean(one.went.length) && html`<${Badge} kind="bad" icon="minus">${t("admin.preview.went", { number: one.went.length })}<//>`}
      ${Boolean(one.moved.length) && html`<${Badge} kind="info" icon="arrow-up-down">${t("admin.preview.moved", { number: one.moved.length })}<//>`}</summary>
    <div class="preview-lists"><${FirstTen} title=${t("admin.preview.before")} ids=${one.before.product_ids} names=${names} marked=${one.went} sign="minus" kind="bad" />
      <${FirstTen} title=${t("admin.preview.after")} ids=${one.after.product_ids} names=${names} marked=${one.came} sign="plus" kind="good" /></div></details>`;
}

function FirstTen({ title, ids, names, marked, sign, kind }) {
  return html`<div><h3>${title}</h3>${ids.length ? html`<ol>${ids.map((id) => html`<li key=${id}>${names[id]} ${marked.includes(id) && html`<${Badge} kind=${kind} icon=${sign}>${t(sign === "plus" ? "admin.preview.new" : "admin.preview.gone")}<//>`}</li>`)}</ol>` : html`<p class="soft">${t("admin.preview.nothing")}</p>`}</div>`;
}
