/** Messages that somebody reported: what they say, why they were reported, and two ways to decide. */

import { addressOf } from "../../app/addresses.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Badge, Button, Icon } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { PagedList, usePages } from "../lists/pages.js";
import { Moment, PartHead } from "../lists/part_head.js";
import { ask } from "../lists/question.js";

const KINDS = { waiting: "warn", hidden: "bad", kept: "" };
const stateOf = (one) => (one.hidden_at ? "hidden" : one.decided_by ? "kept" : "waiting");

export function ReportedMessages() {
  const pages = usePages("api/admin/reported-messages?limit=30");
  return html`<${PartHead} title=${t("admin.messages")} about=${t("admin.messages.about")} />
    <${PagedList} pages=${pages} label=${t("admin.messages")} empty=${t("admin.messages.none")} keyOf=${(one) => `${one.talk_id}-${one.number}`}>${(one) => html`<${Reported} one=${one} onDecided=${pages.reload} />`}<//>`;
}

function Reported({ one, onDecided }) {
  const state = stateOf(one);
  const decide = (status) => () => ask({
    title: t(`admin.message.${status}.title`),
    text: t(`admin.message.${status}.text`),
    button: t(`admin.message.${status}.do`),
    danger: status === "hidden",
    done: t("admin.done"),
    work: async () => {
      await marketJson(`api/admin/reported-messages/${one.talk_id}/${one.number}`, { method: "PUT", json: { status } });
      onDecided();
    },
  });
  return html`<article class="admin-row">
    <div class="grow stack"><div class="row-wrap"><${Badge} kind=${KINDS[state]}>${t(`admin.message.is.${state}`)}<//><span class="soft">${t(`admin.message.by.${one.side}`)}${one.author && ` · ${one.author}`}</span></div>
      <blockquote class="admin-quote">${one.picture ? html`<a href=${addressOf(one.picture.urls.large)} target="_blank" rel="noopener"><${Icon} name="image" /> ${t("admin.message.picture")}</a>` : one.body}</blockquote>
      ${one.report_reason && html`<p><${Icon} name="flag" /> ${one.report_reason}</p>`}
      <p class="faint"><small>${t("admin.message.number", { talk: one.talk_id, number: one.number })}${one.reported_at && html` · <${Moment} at=${one.reported_at} />`}</small></p></div>
    <div class="admin-acts">${state !== "kept" && html`<${Button} small icon=${state === "hidden" ? "eye" : "check"} onClick=${decide("kept")}>${t("admin.message.kept.do")}<//>`}
      ${state !== "hidden" && html`<${Button} small kind="danger" icon="eye-off" onClick=${decide("hidden")}>${t("admin.message.hidden.do")}<//>`}</div>
  </article>`;
}
