/** The frame: the parts beside, the one that the address names in the middle. */

import { html, useEffect } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Icon, Menu, Note, toast } from "../design/components.js";
import { TopBar } from "../design/shell.js";
import { account, accountForm, signOut } from "../market/account.js";
import { tokens } from "../market/market_calls.js";
import { hashOf, PARTS, place } from "./lists/address.js";
import { FlaggedGoods } from "./goods/flagged.js";
import { ReportedMessages } from "./goods/reported_messages.js";
import { Reviews } from "./goods/reviews.js";
import { QuestionDialog } from "./lists/question.js";
import { AuditLog } from "./log/audit_log.js";
import { Overview } from "./log/overview.js";
import { DataRequests } from "./people/data_requests.js";
import { People } from "./people/people.js";
import { Cards } from "./shops/cards.js";
import { Suppliers } from "./shops/suppliers.js";
import { WordsPart } from "./words/words_part.js";

const ICONS = { overview: "gauge", suppliers: "store", cards: "shield-check", flagged: "flag", reviews: "star", messages: "message-circle", words: "folder-tree", people: "users", requests: "inbox", audit: "history" };
const VIEWS = { overview: Overview, suppliers: Suppliers, cards: Cards, flagged: FlaggedGoods, reviews: Reviews, messages: ReportedMessages, words: WordsPart, people: People, requests: DataRequests, audit: AuditLog };

export function AdminPage() {
  useEffect(() => { document.title = t("page.admin"); }, []);
  const { part } = place.value;
  // On a phone the parts are a row that may be longer than the screen.
  useEffect(() => { document.querySelector(".desk-part[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); }, [part, isAdmin()]);
  return html`<div class="page"><a class="skip-link" href="#content" onClick=${skip}>${t("skip.to.content")}</a><${TopBar} current="admin" end=${html`<${AdminMenu} />`} />
    <div class="desk-body">
      ${isAdmin() && html`<nav class="desk-parts" aria-label=${t("page.admin")}>${PARTS.map((name) => html`<a class="desk-part" key=${name} href=${hashOf(name)} aria-current=${name === part ? "page" : undefined}><${Icon} name=${ICONS[name]} /><span>${t(`admin.${name}`)}</span></a>`)}</nav>`}
      <main id="content" class="admin" tabindex="-1"><${Content} /></main>
    </div>
    <${QuestionDialog} />
  </div>`;
}

/** Also on an open server: what an admin does stays, so it needs a token. */
const isAdmin = () => Boolean(tokens.value) && account.value?.role === "admin";

function Content() {
  const who = account.value;
  if (who === undefined) return null;
  const enter = (label) => html`<${Button} kind="primary" icon="log-in" onClick=${() => { accountForm.value = "login"; }}>${label}<//>`;
  if (!tokens.value || !who) return html`<div class="admin-door"><${Icon} name="shield" /><h1>${t("page.admin")}</h1><p class="soft">${t("admin.sign.in")}</p>${enter(t("account.login"))}<p class="faint"><small>${t("admin.first")} <code>tis seed --admin ada@example.com</code></small></p></div>`;
  if (!isAdmin()) return html`<div class="admin-door"><${Icon} name="shield" /><h1>${t("page.admin")}</h1><${Note} kind="warn" role="alert">${t("admin.forbidden", { name: who.name })}<//>${enter(t("admin.sign.in.other"))}</div>`;
  const { part, query } = place.value;
  const View = VIEWS[part];
  return html`<${View} query=${query} key=${JSON.stringify(place.value)} />`;
}

function AdminMenu() {
  if (!tokens.value || !account.value) return null;
  const leave = { icon: "log-out", label: t("account.logout"), onSelect: () => signOut().then(() => toast(t("account.left"), "log-out")) };
  return html`<${Menu} icon="user" label=${t("account.of", { name: account.value.name })} items=${[leave]} end />`;
}

/** The address belongs to the parts: the link moves the focus without changing it. */
function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}
