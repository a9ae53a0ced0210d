/** The frame: the parts beside, the one that the address names in the middle. */

import { addressOf } from "../app/addresses.js";
import { html, useEffect } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Icon, Menu, Note, toast } from "../design/components.js";
import { TopBar } from "../design/shell.js";
import { account, accountForm, isOpen, signOut } from "../market/account.js";
import { followOrders } from "../market/orders/order_calls.js";
import { tokens } from "../market/market_calls.js";
import { detail, part, PARTS } from "./address.js";
import { GoodsPart } from "./goods/goods_part.js";
import { followHolds, waiting } from "./holds/holds.js";
import { HoldsPart } from "./holds/holds_part.js";
import { MessagesPart } from "./messages/messages_part.js";
import { followTalksOfShop, numWaitingTalks } from "./messages/shop_talks.js";
import { NumbersPart } from "./numbers/numbers_part.js";
import { chooseShop, learnShops, ownShop, shops, shopsFault } from "./own_shop/own_shop.js";
import { RegisterShop } from "./own_shop/register_shop.js";
import { OrdersPart } from "./orders/orders_part.js";
import { ReviewsPart } from "./reviews/reviews_part.js";
import { SheetsPart } from "./sheets/sheets_part.js";
import { Invitations, OwnNumber } from "./shop/invitations.js";
import { ShopPart } from "./shop/shop_part.js";
import { StockPart } from "./stock/stock_part.js";

const ICONS = {
  goods: "package",
  sheets: "file-spreadsheet",
  holds: "bell",
  orders: "shopping-bag",
  messages: "message-circle",
  stock: "history",
  reviews: "star",
  numbers: "chart-column",
  shop: "store",
};
const VIEWS = {
  goods: GoodsPart,
  sheets: SheetsPart,
  holds: HoldsPart,
  orders: OrdersPart,
  messages: MessagesPart,
  stock: StockPart,
  reviews: ReviewsPart,
  numbers: NumbersPart,
  shop: ShopPart,
};

/** How many wait for the shop in a part. */
const WAITING = { holds: () => waiting.value.length, messages: () => numWaitingTalks.value };

export function DeskPage() {
  useEffect(() => { document.title = t("page.desk"); }, []);
  const shopId = ownShop.value?.id;
  // On a phone the parts stand in a row that is longer than the screen.
  useEffect(() => { document.querySelector(".desk-part[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); }, [part.value, shopId]);
  useEffect(() => (shopId ? followHolds(shopId) : undefined), [shopId]);
  useEffect(() => (shopId ? followTalksOfShop(shopId) : undefined), [shopId]);
  useEffect(() => followOrders("shop", ({ type }) => { if (type === "order.placed") toast(t("orders.news.placed"), "shopping-bag"); }), []);
  const end = html`<${ShopChoice} /><${AccountMenu} />`;
  return html`<div class="page"><a class="skip-link" href="#content" onClick=${skip}>${t("skip.to.content")}</a><${TopBar} current="desk" end=${end} />
    <div class="desk-body">
      ${ownShop.value && html`<nav class="desk-parts" aria-label=${t("page.desk")}>${PARTS.map((name) => html`<a class="desk-part" href=${`#/${name}`} aria-current=${name === part.value ? "page" : undefined}><${Icon} name=${ICONS[name]} /><span>${t(`desk.${name}`)}</span><${WaitingBadge} number=${WAITING[name]?.() ?? 0} /></a>`)}</nav>`}
      <main id="content" class="desk" tabindex="-1"><${Invitations} /><${Content} /></main>
    </div>
  </div>`;
}

function WaitingBadge({ number }) {
  return number > 0 ? html`<span class="badge accent"><span aria-hidden="true">${number}</span><span class="visually-hidden">${t("desk.waiting", { number })}</span></span>` : null;
}

function Content() {
  if (account.value === undefined) return null;
  if (!account.value && !isOpen) return html`<h1>${t("page.desk")}</h1><${Note} kind="info"><div class="row-wrap"><span class="grow">${t("desk.sign.in")}</span><${Button} small icon="log-in" onClick=${() => { accountForm.value = "login"; }}>${t("account.login")}<//></div><//>`;
  if (shopsFault.value) return html`<h1>${t("page.desk")}</h1><${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${shopsFault.value.message}</span><${Button} small icon="refresh-cw" onClick=${learnShops}>${t("desk.again")}<//></div><//>`;
  if (shops.value === undefined) return html`<p class="soft" role="status">${t("desk.loading")}</p>`;
  const shop = ownShop.value;
  if (!shop) return html`<${OwnNumber} /><${RegisterShop} />`;
  const View = VIEWS[part.value];
  return html`<${View} shop=${shop} talkId=${detail.value} key=${shop.id} />`;
}

/** Which shop, if there are several. */
function ShopChoice() {
  const all = shops.value ?? [];
  if (all.length < 2) return all.length ? html`<span class="shop-name one-line">${ownShop.value.business_name}</span>` : null;
  return html`<select class="select shop-choice" aria-label=${t("desk.shop.choose")} value=${String(ownShop.value.id)} onChange=${(event) => chooseShop(Number(event.target.value))}>
    ${all.map((one) => html`<option value=${String(one.id)} selected=${one.id === ownShop.value.id}>${one.business_name}</option>`)}</select>`;
}

function AccountMenu() {
  if (account.value === undefined) return null;
  const toShop = { icon: "shopping-bag", label: t("page.shop"), onSelect: () => location.assign(addressOf("shop")) };
  const leave = { icon: "log-out", label: t("account.logout"), onSelect: () => signOut().then(() => toast(t("account.left"), "log-out")) };
  const enter = { icon: "log-in", label: t("account.login"), onSelect: () => { accountForm.value = "login"; } };
  return html`<${Menu} icon="user" label=${t("account.of", { name: account.value?.name ?? t("account.anybody") })} items=${[toShop, tokens.value ? leave : enter]} end />`;
}

/** The address belongs to the parts: the link moves the focus without changing it. */
function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}
