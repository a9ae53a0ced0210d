/** One hold: what, how many, who, how long still, and what the shop may do about it. */

import { addressOf } from "../../app/addresses.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { counted, formatDay, formatRupiah, formatTime, t } from "../../app/words.js";
import { Badge, Button, Icon, Note, toast } from "../../design/components.js";
import { now } from "../../design/shell.js";
import { messageOf } from "../own_shop/messages_of.js";
import { accept, sell } from "./holds.js";

const KINDS = { waiting: "warn", accepted: "info", committed: "good", refused: "", released: "", expired: "", ordered: "good" };
const ICONS = { waiting: "bell", accepted: "check", committed: "shopping-bag", refused: "x", released: "undo-2", expired: "clock", ordered: "shopping-bag" };
const SOON_SECONDS = 120;

/** The hold that was acted upon: its card moves, and takes the focus along. */
let acted = null;

export function HoldCard({ hold, onRefuse }) {
  const ref = useRef(null);
  useEffect(() => {
    if (acted !== hold.id) return;
    acted = null;
    ref.current.focus();
  }, []);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const seconds = Math.max(0, Math.floor((Date.parse(hold.expires_at) - now.value) / 1000));
  const state = stateOf(hold, seconds);
  const isOpen = state === "waiting" || state === "accepted";
  const attempt = (work, said) => async () => {
    setBusy(true);
    setError("");
    acted = hold.id;
    try {
      const { status } = await work(hold);
      if (status !== "held") document.getElementById("content").focus({ preventScroll: true });
      toast(t(said));
    } catch (fault) {
      acted = null;
      setError(messageOf(fault));
    }
    setBusy(false);
  };
  return html`<article class="card hold-card ${state}" ref=${ref} tabindex="-1" aria-label=${hold.product_name}>
    <header role="presentation"><h3 class="grow"><a href=${`${addressOf("shop")}#/p/${hold.product_id}`}>${hold.product_name}</a></h3><${Badge} kind=${KINDS[state]} icon=${ICONS[state]}>${t(`holds.state.${state}`)}<//></header>
    <dl class="hold-facts">
      <div><dt>${t("holds.quantity")}</dt><dd class="numbers"><strong>${counted("holds.units", hold.quantity)}</strong> <span class="soft">× ${formatRupiah(hold.unit_price)}</span></dd></div>
      <div><dt>${t("holds.total")}</dt><dd class="numbers"><strong>${formatRupiah(hold.unit_price * hold.quantity)}</strong></dd></div>
      ${isOpen ? html`<div><dt>${t("holds.left")}</dt><dd><span class=${seconds < SOON_SECONDS ? "countdown soon numbers" : "countdown numbers"} role="timer" aria-label=${t("holds.left")}>${clock(seconds)}</span></dd></div>`
        : html`<div><dt>${t("holds.ended")}</dt><dd class="numbers">${moment(hold.ended_at ?? hold.expires_at)}</dd></div>`}
    </dl>
    <${Buyer} buyer=${hold.buyer} isOpen=${isOpen} isAccepted=${Boolean(hold.accepted_at)} />
    ${hold.refusal_reason && html`<p class="soft hold-reason">${t("holds.reason.was", { reason: hold.refusal_reason })}</p>`}
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${isOpen && html`<div class="row-wrap hold-actions">
      ${state === "waiting" ? html`<${Button} kind="primary" icon="check" disabled=${isBusy} onClick=${attempt(accept, "holds.accepted.done")}>${t("holds.accept")}<//>`
        : html`<${Button} kind="primary" icon="shopping-bag" disabled=${isBusy} onClick=${attempt(sell, "holds.sold.done")}>${t("holds.sold")}<//>`}
      <${Button} icon="x" disabled=${isBusy} onClick=${() => onRefuse(hold)}>${t(state === "waiting" ? "holds.refuse" : "holds.give.up")}<//>
    </div>`}
  </article>`;
}

/** How to reach a buyer shows once the shop has accepted. */
function Buyer({ buyer, isOpen, isAccepted }) {
  if (!buyer) return html`<p class="faint hold-buyer"><${Icon} name="user" /> ${t("holds.buyer.unknown")}</p>`;
  return html`<div class="hold-buyer"><p><${Icon} name="user" /> <strong>${buyer.name}</strong>${isOpen && !isAccepted && html` <span class="faint"><small>${t("holds.buyer.later")}</small></span>`}</p>
    ${(buyer.phone || buyer.email) && html`<p class="row-wrap">${buyer.phone && html`<a class="button small" href=${`tel:${buyer.phone}`}><${Icon} name="phone" />${buyer.phone}</a>`}
      ${buyer.email && html`<a class="button small" href=${`mailto:${buyer.email}`}><${Icon} name="mail" />${buyer.email}</a>`}</p>`}</div>`;
}

function stateOf(hold, seconds) {
  if (hold.status !== "held") return hold.status;
  if (!seconds) return "expired";
  return hold.accepted_at ? "accepted" : "waiting";
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
const moment = (text) => `${formatDay(new Date(text))}, ${formatTime(new Date(text))}`;
