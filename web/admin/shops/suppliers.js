/** Suppliers by status: who they are, where, and an end to their sales or to the end of these. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { later } from "../../app/later.js";
import { Badge, Button, Tabs, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";
import { addressOf } from "../../app/addresses.js";

const STATES = ["active", "suspended", "closed"];
const ProvinceMap = later(async () => (await import("../../market/map/province_map.js")).ProvinceMap, () => toast(t("admin.map.failed"), "circle-alert"), { early: false });
const KINDS = { active: "good", suspended: "bad", closed: "" };

export function Suppliers({ query }) {
  const [status, setStatus] = useState(STATES.includes(query.status) ? query.status : "active");
  const [typed, setTyped] = useState("");
  const [text, setText] = useState("");
  const [selected, setSelected] = useState(null);
  const pages = usePages(`api/suppliers?${new URLSearchParams({ status, limit: 50, ...(text && { q: text }) })}`);
  const search = (event) => {
    event.preventDefault();
    setText(typed.trim());
  };
  const points = (pages.items ?? []).filter((one) => one.latitude !== null).map((one) => ({ id: one.id, latitude: one.latitude, longitude: one.longitude, label: one.business_name, kind: `supplier-${status}` }));
  const select = (id) => {
    setSelected(id);
    document.getElementById(`supplier-${id}`)?.scrollIntoView({ block: "nearest" });
  };
  return html`<${PartHead} title=${t("admin.suppliers")} about=${t("admin.suppliers.about")} />
    <${Tabs} label=${t("admin.status")} selected=${status} onSelect=${setStatus} tabs=${STATES.map((id) => ({ id, label: t(`admin.status.${id}`) }))} />
    <div id=${`panel-${status}`} role="tabpanel" class="stack" aria-label=${t(`admin.status.${status}`)}>
      <form class="admin-search" role="search" onSubmit=${search}><input class="input" type="search" maxlength="200" aria-label=${t("admin.suppliers.search")} placeholder=${t("admin.suppliers.search")} value=${typed} onInput=${(event) => setTyped(event.target.value)} />
        <${Button} type="submit" icon="search" label=${t("admin.search")} /></form>
      <div class="admin-map"><${ProvinceMap} points=${points} selected=${selected} onSelect=${select} label=${t("admin.suppliers.map")} /></div>
      <${PagedList} pages=${pages} label=${t("admin.suppliers")} empty=${t("admin.suppliers.none")}>${(one) => html`<${Supplier} one=${one} status=${status} isSelected=${one.id === selected} onSelect=${() => setSelected(one.id)} onGone=${() => pages.replace(one.id, null)} />`}<//>
    </div>`;
}

function Supplier({ one, status, isSelected, onSelect, onGone }) {
  const change = (next) => ask({
    title: t(`admin.supplier.${next}.title`, { name: one.business_name }),
    text: t(`admin.supplier.${next}.text`),
    button: t(`admin.supplier.${next}.do`),
    danger: next === "suspended",
    reason: next === "suspended" ? "needed" : "wanted",
    done: t("admin.done"),
    work: async (reason) => {
      await marketJson(`api/suppliers/${one.id}/status`, { method: "PUT", json: { status: next, reason } });
      onGone();
    },
  });
  const place = [one.city, one.province].filter(Boolean).join(", ");
  return html`<article class="admin-row" id=${`supplier-${one.id}`} data-selected=${isSelected}>
    <div class="grow"><h2 class="admin-name">${status === "active" ? html`<a href=${`${addressOf("shop")}#/?supplier_id=${one.id}`}>${one.business_name}</a>` : one.business_name} <span class="faint numbers">#${one.id}</span></h2>
      <p class="soft">${place}${one.address ? ` · ${one.address}` : ""}</p>
      <p class="faint"><small>${one.name} · ${one.email} · ${t("admin.since")} <${Moment} at=${one.registration_date} /></small></p></div>
    <div class="admin-acts"><${Button} small kind="quiet" icon="map-pin" label=${t("admin.supplier.show", { name: one.business_name })} aria-pressed=${isSelected} onClick=${onSelect} /><${Badge} kind=${KINDS[status]}>${t(`admin.status.${status}`)}<//>
      ${status === "active" && html`<${Button} small kind="danger" icon="ban" onClick=${() => change("suspended")}>${t("admin.supplier.suspended.do")}<//>`}
      ${status === "suspended" && html`<${Button} small icon="circle-check" onClick=${() => change("active")}>${t("admin.supplier.active.do")}<//>`}</div>
  </article>`;
}
