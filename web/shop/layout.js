/** The frame of the shop: the search above, what the address names below, the assistant beside it. */

import { TopBar } from "../design/shell.js";
import { Button, toast } from "../design/components.js";
import { html, signal, useEffect } from "../app/view.js";
import { later } from "../app/later.js";
import { t } from "../app/words.js";
import { account } from "../market/account.js";
import { AccountMenu } from "./account/account_menu.js";
import { compared, toggleCompared } from "./goods/product_card.js";
import { forgetPlace, locate, near } from "./address/near.js";
import { compareHash, goTo, place } from "./address/place.js";
import { FilterChips } from "./search/chips.js";
import { Filters, FiltersDrawer } from "./search/filters.js";
import { Results } from "./search/results.js";
import { SearchBox } from "./search/search_box.js";

// A phone on a slow line gets the list of goods first.
const part = (read) => later(read, () => toast(t("server.unreachable"), "circle-alert"));
const AccountPage = part(async () => (await import("./account/account_page.js")).AccountPage);
const AssistantDrawer = part(async () => (await import("./assistant/assistant_panel.js")).AssistantDrawer);
const AssistantPanel = part(async () => (await import("./assistant/assistant_panel.js")).AssistantPanel);
const ComparePage = part(async () => (await import("./product/compare_page.js")).ComparePage);
const HoldsPage = part(async () => (await import("./product/holds_page.js")).HoldsPage);
const OrdersPage = part(async () => (await import("./orders/orders_page.js")).OrdersPage);
const TalksPage = part(async () => (await import("./messages/talks_page.js")).TalksPage);
const SavedPage = part(async () => (await import("./account/saved_page.js")).SavedPage);
const ProductPage = part(async () => (await import("./product/product_page.js")).ProductPage);

const wide = matchMedia("(min-width: 64rem)");
const isWide = signal(wide.matches);
wide.addEventListener("change", () => { isWide.value = wide.matches; });
const areFiltersOpen = signal(false);
const isAssistantOpen = signal(wide.matches);

export function ShopPage() {
  const shown = place.value;
  const asked = shown.kind === "list" ? shown.asked : {};
  useEffect(() => { document.title = t("page.shop"); }, []);
  const assistant = html`<${Button} icon="sparkles" kind="quiet" label=${t("shop.assistant")} aria-pressed=${isAssistantOpen.value} onClick=${() => { isAssistantOpen.value = !isAssistantOpen.value; }} />`;
  return html`<div class="page shop-page">
    <a class="skip-link" href="#content" onClick=${skip}>${t("skip.to.content")}</a>
    <${TopBar} current="shop" end=${html`<${NearButton} />${assistant}<${AccountMenu} />`} />
    <div class="shop-body">
      <main class="shop-main" id="content" tabindex="-1">
        <h1 class="visually-hidden">${t("page.shop")}</h1>
        <${SearchBox} asked=${asked} />
        <${Content} shown=${shown} />
      </main>
      ${isAssistantOpen.value && isWide.value && html`<aside class="shop-side" aria-label=${t("shop.assistant")}><${AssistantPanel} /></aside>`}
    </div>
    ${isAssistantOpen.value && !isWide.value && html`<${AssistantDrawer} onClose=${() => { isAssistantOpen.value = false; }} />`}
    <${Compared} />
  </div>`;
}

function Content({ shown }) {
  if (shown.kind === "product") return html`<${ProductPage} id=${shown.id} key="product" />`;
  if (shown.kind === "compare") return html`<${ComparePage} ids=${shown.ids} key=${shown.ids.join()} />`;
  if (shown.kind === "account") return html`<${AccountPage} key=${account.value?.id} />`;
  if (shown.kind === "holds") return html`<${HoldsPage} />`;
  if (shown.kind === "orders") return html`<${OrdersPage} />`;
  if (shown.kind === "messages") return html`<${TalksPage} id=${shown.id} />`;
  if (shown.kind === "saved") return html`<${SavedPage} key=${account.value?.id} />`;
  const { asked } = shown;
  return html`<div class="row-wrap">${!isWide.value && html`<${Button} small icon="sliders-horizontal" onClick=${() => { areFiltersOpen.value = true; }}>${t("shop.filters")}<//>`}<${FilterChips} asked=${asked} /></div>
    <div class="shop-list">${isWide.value && html`<${Filters} asked=${asked} />`}<${Results} asked=${asked} /></div>
    ${areFiltersOpen.value && !isWide.value && html`<${FiltersDrawer} asked=${asked} onClose=${() => { areFiltersOpen.value = false; }} />`}`;
}

function NearButton() {
  const change = () => (near.value ? forgetPlace() : locate().catch(() => toast(t("shop.near.failed"), "circle-alert")));
  return html`<${Button} icon="map-pin" kind="quiet" aria-pressed=${Boolean(near.value)} label=${t(near.value ? "shop.near.forget" : "shop.near.me")} onClick=${change} />`;
}

/** What was chosen to be compared, at the foot of the page. */
function Compared() {
  const ids = compared.value;
  if (!ids.length || place.value.kind === "compare") return null;
  return html`<div class="compared-bar" role="region" aria-label=${t("shop.compare")}>
    <span>${t("shop.compare.chosen", { number: ids.length })}</span>
    <${Button} kind="quiet" onClick=${() => ids.forEach(toggleCompared)}>${t("shop.compare.none")}<//>
    <${Button} kind="primary" icon="scale" disabled=${ids.length < 2} onClick=${() => goTo(compareHash(ids))}>${t("shop.compare")}<//>
  </div>`;
}

/** The address belongs to the goods: the link moves the focus without changing it. */
function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}
