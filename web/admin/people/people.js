/** Users by e-mail: their rights, and requests about their data of those who cannot sign in. Each look at one is logged. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Badge, Button, Icon, Note } from "../../design/components.js";
import { account } from "../../market/account.js";
import { marketJson } from "../../market/market_calls.js";
import { hashOf } from "../lists/address.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";
import { RequestDialog } from "./request_dialog.js";

export function People({ query }) {
  const [typed, setTyped] = useState(query.email ?? "");
  const [email, setEmail] = useState(query.email ?? "");
  const pages = usePages(email ? `api/users?${new URLSearchParams({ email, limit: 20 })}` : null);
  const [asked, setAsked] = useState(null);
  const search = (event) => {
    event.preventDefault();
    setEmail(typed.trim());
  };
  return html`<${PartHead} title=${t("admin.people")} about=${t("admin.people.about")} />
    <form class="admin-search" role="search" onSubmit=${search}><input class="input" type="search" inputmode="email" autocomplete="off" maxlength="320" required aria-label=${t("admin.people.search")} placeholder=${t("admin.people.search")} value=${typed} onInput=${(event) => setTyped(event.target.value)} />
      <${Button} type="submit" icon="search" label=${t("admin.search")} /></form>
    ${email ? html`<${PagedList} pages=${pages} label=${t("admin.people")} empty=${t("admin.people.none")}>${(one) => html`<${Person} one=${one} onChanged=${(user) => pages.replace(one.id, user)} onAsked=${() => setAsked(one)} />`}<//>` : html`<div class="admin-empty"><${Icon} name="users" /><p>${t("admin.people.begin")}</p></div>`}
    ${asked && html`<${RequestDialog} user=${asked} onClose=${() => setAsked(null)} />`}`;
}

function Person({ one, onChanged, onAsked }) {
  const isAdmin = one.role === "admin";
  const isSelf = account.value?.kind === "user" && account.value.id === one.id;
  const grant = (name, granted) => ask({
    title: t(`admin.grant.${name}.title`, { name: one.name }),
    text: t(`admin.grant.${name}.text`),
    button: t(`admin.grant.${name}.do`),
    danger: name === "no_admin",
    done: t("admin.done"),
    work: async () => onChanged(await marketJson(`api/users/${one.id}/grants`, { method: "PUT", json: granted })),
  });
  const place = [one.city, one.province].filter(Boolean).join(", ");
  return html`<article class="admin-row">
    <div class="grow"><div class="row-wrap"><h2 class="admin-name">${one.name}</h2>${isAdmin && html`<${Badge} kind="accent" icon="shield">${t("admin.is.admin")}<//>`}${one.ai_access_enabled && html`<${Badge} kind="info" icon="sparkles">${t("admin.is.ai")}<//>`}</div>
      <p>${one.email}</p>
      <p class="faint"><small>#${one.id}${place ? ` · ${place}` : ""} · ${t("admin.since")} <${Moment} at=${one.created_at} /> · <a href=${hashOf("audit", { actor: `user:${one.id}` })}>${t("admin.audit.of")}</a></small></p></div>
    <div class="admin-acts">
      <${Button} small icon="sparkles" onClick=${() => grant(one.ai_access_enabled ? "no_ai" : "ai", { ai_access_enabled: !one.ai_access_enabled })}>${t(one.ai_access_enabled ? "admin.grant.no_ai.do" : "admin.grant.ai.do")}<//>
      <${Button} small icon="shield" kind=${isAdmin ? "danger" : ""} disabled=${isSelf} onClick=${() => grant(isAdmin ? "no_admin" : "admin", { role: isAdmin ? "user" : "admin" })}>${t(isAdmin ? "admin.grant.no_admin.do" : "admin.grant.admin.do")}<//>
      <${Button} small icon="inbox" onClick=${onAsked}>${t("admin.request.new")}<//></div>
    ${isSelf && html`<${Note} kind="info">${t("admin.is.self")}<//>`}
  </article>`;
}
