/** In the top bar: who is signed in, and the way to what he holds. */

import { addressOf } from "../../app/addresses.js";
import { Button, Menu, toast } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { goTo } from "../address/place.js";
import { account, accountForm, isOpen, signOut } from "../../market/account.js";
import { tokens } from "../../market/market_calls.js";

export function AccountMenu() {
  if (account.value === undefined) return null;
  if (!account.value && !isOpen) return html`<${Button} icon="log-in" label=${t("account.login")} onClick=${() => { accountForm.value = "login"; }} />`;
  const holds = { icon: "package", label: t("shop.holds"), onSelect: () => goTo("#/holds") };
  const orders = { icon: "shopping-bag", label: t("orders"), onSelect: () => goTo("#/orders") };
  const talks = { icon: "message-circle", label: t("talks"), onSelect: () => goTo("#/messages") };
  const saved = { icon: "bell", label: t("shop.saved.searches"), onSelect: () => goTo("#/saved") };
  const own = { icon: "settings", label: t("account"), onSelect: () => goTo("#/account") };
  const desk = { icon: "store", label: t("page.desk"), onSelect: () => location.assign(addressOf("desk")) };
  const admin = tokens.value && account.value?.role === "admin" ? [{ icon: "shield", label: t("page.admin"), onSelect: () => location.assign(addressOf("admin")) }] : [];
  const leave = { icon: "log-out", label: t("account.logout"), onSelect: () => signOut().then(() => toast(t("account.left"), "log-out")) };
  const enter = { icon: "log-in", label: t("account.login"), onSelect: () => { accountForm.value = "login"; } };
  const name = account.value?.name ?? t("account.anybody");
  return html`<${Menu} icon="user" label=${t("account.of", { name })} items=${[orders, holds, talks, ...(tokens.value ? [saved] : []), own, desk, ...admin, tokens.value ? leave : enter]} end />`;
}
