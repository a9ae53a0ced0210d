/** What waits for an admin, and what happened last. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";
import { Button, Icon, Note } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { hashOf } from "../lists/address.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { AuditEntry } from "./audit_log.js";

const MAX_COUNTED = 1000;
const TILES = [
  { name: "open_data_requests", icon: "inbox", part: "requests", isUrgent: (all) => all.overdue_data_requests > 0 },
  { name: "flagged_products", icon: "flag", part: "flagged" },
  { name: "hidden_reviews", icon: "eye-off", part: "reviews", query: { status: "hidden" } },
  { name: "reported_messages", icon: "message-circle", part: "messages" },
  { name: "doubtful_cards", icon: "shield-check", part: "cards" },
  { name: "suspended_suppliers", icon: "ban", part: "suppliers", query: { status: "suspended" } },
];

export function Overview() {
  const [counts, setCounts] = useState(null);
  const [error, setError] = useState("");
  const pages = usePages("api/audit?limit=8");
  const load = () => {
    setError("");
    marketJson("api/admin/overview").then(setCounts, (fault) => setError(fault.message));
  };
  useEffect(load, []);
  return html`<${PartHead} title=${t("admin.overview")} about=${t("admin.overview.about")} />
    ${error && html`<${Note} kind="bad" role="alert">${error} <${Button} small icon="refresh-cw" onClick=${load}>${t("admin.again")}<//><//>`}
    <ul class="admin-tiles" aria-label=${t("admin.overview")}>${TILES.map(({ name, icon, part, query, isUrgent }) => html`<li key=${name}><a class="admin-tile" data-urgent=${Boolean(counts && isUrgent?.(counts))} href=${hashOf(part, query)}>
      <${Icon} name=${icon} /><strong class="numbers">${counts ? countOf(counts[name]) : "…"}</strong><span>${t(`admin.overview.${name}`)}</span></a></li>`)}</ul>
    ${counts?.overdue_data_requests > 0 && html`<${Note} kind="bad">${t("admin.overview.overdue", { number: countOf(counts.overdue_data_requests) })}<//>`}
    ${counts?.next_due_at && !counts.overdue_data_requests && html`<${Note} kind="warn">${t("admin.overview.due")} <${Moment} at=${counts.next_due_at} /><//>`}
    <section class="stack"><h2>${t("admin.overview.latest")}</h2><${PagedList} pages=${{ ...pages, next: null }} label=${t("admin.audit")} empty=${t("admin.audit.none")}>${(one) => html`<${AuditEntry} one=${one} />`}<//>
      <p><a href=${hashOf("audit")}>${t("admin.overview.all")}</a></p></section>`;
}

const countOf = (number) => (number > MAX_COUNTED ? `${formatNumber(MAX_COUNTED)}+` : formatNumber(number));
