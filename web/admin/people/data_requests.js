/** Requests about data: what is due, and how each ended. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Badge, Button, Tabs } from "../../design/components.js";
import { marketCall, marketJson } from "../../market/market_calls.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";

const STATES = ["open", "done", "refused"];
const MILLISECONDS_UNTIL_FREED = 10_000;

export function DataRequests({ query }) {
  const [status, setStatus] = useState(STATES.includes(query.status) ? query.status : "open");
  const pages = usePages(`api/admin/data-requests?status=${status}&limit=30`);
  return html`<${PartHead} title=${t("admin.requests")} about=${t("admin.requests.about")} />
    <${Tabs} label=${t("admin.status")} selected=${status} onSelect=${setStatus} tabs=${STATES.map((id) => ({ id, label: t(`admin.requests.${id}`) }))} />
    <div id=${`panel-${status}`} role="tabpanel" aria-label=${t(`admin.requests.${status}`)}>
      <${PagedList} pages=${pages} label=${t("admin.requests")} empty=${t(`admin.requests.${status}.none`)}>${(one) => html`<${DataRequest} one=${one} onEnded=${() => pages.replace(one.id, null)} />`}<//>
    </div>`;
}

function DataRequest({ one, onEnded }) {
  const path = `api/admin/data-requests/${one.id}`;
  const give = () => ask({
    title: t("admin.request.export.title", { id: one.user_id }),
    text: t("admin.request.export.text"),
    button: t("admin.request.export.do"),
    done: t("admin.request.exported"),
    work: async () => {
      save(await (await marketCall(`${path}/export`, { method: "POST" })).blob(), `user-${one.user_id}.json`);
      if (one.status === "open") onEnded();
    },
  });
  const erase = () => ask({
    title: t("admin.request.erase.title", { id: one.user_id }),
    text: t("admin.request.erase.text"),
    button: t("admin.request.erase.do"),
    danger: true,
    done: t("admin.request.erased"),
    work: async () => { await marketJson(`${path}/erase`, { method: "POST" }); onEnded(); },
  });
  const refuse = () => ask({
    title: t("admin.request.refuse.title"),
    text: t("admin.request.refuse.text"),
    button: t("admin.request.refuse.do"),
    reason: "needed",
    done: t("admin.done"),
    work: async (reason) => { await marketJson(`${path}/refuse`, { method: "POST", json: { reason } }); onEnded(); },
  });
  const isOpen = one.status === "open";
  return html`<article class="admin-row">
    <div class="grow stack"><div class="row-wrap"><h2 class="admin-name">${t(`admin.request.${one.kind}`)} <span class="faint numbers">${t("admin.user.number", { id: one.user_id })}</span></h2>
        ${isOpen ? html`<${Badge} kind=${one.is_overdue ? "bad" : "warn"} icon="calendar-clock">${t(one.is_overdue ? "admin.request.overdue" : "admin.request.due")} <${Moment} at=${one.due_at} /><//>` : html`<${Badge} kind=${one.status === "done" ? "good" : ""}>${t(`admin.requests.${one.status}`)} <${Moment} at=${one.ended_at} /><//>`}</div>
      <p>${one.reason}</p>
      ${one.ended_reason && html`<p class="soft">${t("admin.request.refused.because", { reason: one.ended_reason })}</p>`}
      <p class="faint"><small>#${one.id} · ${t("admin.request.came")} <${Moment} at=${one.received_at} /> · ${t("admin.by", { name: one.created_by ?? "?" })}${one.ended_by ? ` · ${t("admin.ended.by", { name: one.ended_by })}` : ""}</small></p></div>
    <div class="admin-acts">
      ${one.kind === "export" && one.status !== "refused" && html`<${Button} small icon="download" onClick=${give}>${t("admin.request.export.do")}<//>`}
      ${isOpen && one.kind === "erase" && html`<${Button} small kind="danger" icon="trash-2" onClick=${erase}>${t("admin.request.erase.do")}<//>`}
      ${isOpen && html`<${Button} small kind="quiet" onClick=${refuse}>${t("admin.request.refuse.do")}<//>`}</div>
  </article>`;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), MILLISECONDS_UNTIL_FREED);
}
