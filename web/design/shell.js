/** The frame of every page: top bar, choice of theme and language, the question for a key, toasts. */

import { Button, Dialog, Field, Icon, Menu, Switch, Toasts } from "./components.js";
import { addressOf, assetOf } from "../app/addresses.js";
import { lastChat } from "../app/last_chat.js";
import { forgetKeys, hasKey, keyQuestion, setKey } from "../app/keys.js";
import { setTheme, theme, THEMES } from "../app/theme.js";
import { html, signal, useState } from "../app/view.js";
import { language, LANGUAGES, setLanguage, t } from "../app/words.js";

const PAGES = [
  { path: "", icon: "message-square", label: "page.chat" },
  { path: "shop", icon: "shopping-bag", label: "page.shop" },
  { path: "card", icon: "id-card", label: "page.card" },
  { path: "status", icon: "activity", label: "page.status" },
  { path: "docs", icon: "book-open", label: "page.docs" },
];
/** Pages of few people: the way to them is the menu of their account. */
const DESKS = [
  { path: "desk", icon: "store", label: "page.desk" },
  { path: "admin", icon: "shield", label: "page.admin" },
];
const narrowest = matchMedia("(max-width: 30rem)");
const isNarrowest = signal(narrowest.matches);
narrowest.addEventListener("change", () => { isNarrowest.value = narrowest.matches; });
const THEME_ICONS = { system: "monitor", light: "sun", dark: "moon" };

/** `start` and `end` are what a page adds to the bar. */
export function TopBar({ current, start, end }) {
  return html`<header class="top-bar">
    ${start}
    <a class="brand" href=${linkTo("", current)} aria-label=${t("page.home")}><img src=${assetOf("design/logo.svg")} width="26" height="26" alt="" /></a>
    <nav class="page-links" aria-label=${t("page.all")}>${[...PAGES, ...DESKS.filter((page) => page.path === current)].map((page) => html`<a class="page-link" href=${linkTo(page.path, current)}
      aria-current=${page.path === current ? "page" : undefined} aria-label=${t(page.label)}><${Icon} name=${page.icon} /><span>${t(page.label)}</span></a>`)}</nav>
    <div class="grow"></div>
    ${end}
    <${Preferences} current=${current} />
  </header>`;
}

/** From another page the way to the chat leads back to its conversation. */
function linkTo(path, current) {
  return addressOf(path) + (path === "" && current !== "" ? lastChat() : "");
}

function Preferences({ current }) {
  const others = isNarrowest.value ? PAGES.filter((page) => page.path !== current) : [];
  const pages = others.map((page) => ({ icon: page.icon, label: t(page.label), onSelect: () => location.assign(linkTo(page.path, current)) }));
  const themes = THEMES.map((name, at) => ({ begins: at === 0 && pages.length > 0, icon: THEME_ICONS[name], label: t(`theme.${name}`), checked: theme.value === name, onSelect: () => setTheme(name) }));
  const languages = Object.entries(LANGUAGES).map(([code, label], at) => ({ begins: at === 0, icon: "languages", label, checked: language.value === code, onSelect: () => setLanguage(code) }));
  const forget = hasKey("api") || hasKey("admin") ? [{ icon: "key", label: t("key.forget"), onSelect: forgetKeys }] : [];
  return html`<${Menu} icon=${pages.length ? "panels-top-left" : THEME_ICONS[theme.value]} label=${t(pages.length ? "preferences.pages" : "preferences")} items=${[...pages, ...themes, ...languages, ...forget]} end />`;
}

function KeyDialog() {
  const question = keyQuestion.value;
  const [key, setText] = useState("");
  const [remember, setRemember] = useState(true);
  if (!question) return null;
  const give = (event) => {
    event.preventDefault();
    if (!key.trim()) return;
    setKey(question.kind, key.trim(), remember);
    setText("");
    question.answer(key.trim());
  };
  const name = t(`key.${question.kind}`);
  return html`<${Dialog} title=${name} onClose=${() => question.answer(null)}>
    <form class="stack" onSubmit=${give}>
      <p class="soft">${t(`key.${question.kind}.why`)}</p>
      <${Field} label=${name} error=${question.wrong && t("key.wrong")}>${(attributes) => html`<input class="input mono" type="password" autocomplete="off" autofocus
        value=${key} onInput=${(event) => setText(event.target.value)} ...${attributes} />`}<//>
      <${Switch} label=${t("key.remember")} checked=${remember} onChange=${setRemember} />
      <div class="row"><div class="grow"></div><${Button} kind="primary" type="submit">${t("key.use")}<//></div>
    </form>
  <//>`;
}

/** Beside the page itself: what may open at any time. */
export function Overlays() {
  return html`<${KeyDialog} /><${Toasts} />`;
}

/** Ticks every second, for durations that go on. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);
