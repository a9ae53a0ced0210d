/** The conversations by day, with search. At the side, or as a drawer on a phone. */

import { Button, Dialog, Icon, Menu } from "../../design/components.js";
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { language, t } from "../../app/words.js";
import { conversationHash, goTo } from "../conversations/address.js";
import { answeringIn } from "../answers/answering.js";
import { addressIdOf, conversations, current, draft } from "../conversations/conversations.js";
import { conversationActions, Renaming, renaming } from "./conversation_menu.js";
import { ImportButton } from "./import_button.js";
import { searchMessages } from "../conversations/storage.js";
import { byDay } from "../conversations/titles.js";

/** Counts wishes: the field of the search takes the focus when the number changes. */
export const searchWished = signal(0);

const MAX_SHOWN = 300;
const SEARCH_MILLISECONDS = 180;
const query = signal("");

export function Sidebar({ onChosen = () => {} }) {
  return html`<nav class="sidebar" aria-label=${t("chat.conversations")}>
    <div class="sidebar-top">
      <${Button} icon="square-pen" class="new-chat" onClick=${() => { goTo("#/"); onChosen(); }}>${t("chat.new")}<//>
      <${Search} />
    </div>
    <div class="sidebar-list scroll"><${List} onChosen=${onChosen} /></div>
    <div class="sidebar-end"><${ImportButton} onDone=${onChosen} /></div>
  </nav>`;
}

export function SidebarDrawer({ onClose }) {
  return html`<${Dialog} title=${t("chat.conversations")} edge="left" onClose=${onClose}><${Sidebar} onChosen=${onClose} /><//>`;
}

function Search() {
  const ref = useRef(null);
  // At once: what is typed behind the keys of the wish is for this field.
  useLayoutEffect(() => { if (searchWished.value) ref.current.focus(); }, [searchWished.value]);
  const onKey = (event) => { if (event.key === "Escape" && query.value) { event.preventDefault(); event.stopPropagation(); query.value = ""; } };
  return html`<div class="search"><${Icon} name="search" /><input ref=${ref} class="input" type="search" aria-label=${t("chat.search")} placeholder=${t("chat.search")}
    value=${query.value} onInput=${(event) => { query.value = event.target.value; }} onKeyDown=${onKey} /></div>`;
}

/** Conversations whose title or text has what is searched for; null while nothing is. */
function useFound() {
  const [inTexts, setInTexts] = useState(new Set());
  const text = query.value.trim();
  useEffect(() => {
    if (text.length < 2) return setInTexts(new Set());
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const found = await searchMessages(text);
      if (isCurrent) setInTexts(found);
    }, SEARCH_MILLISECONDS);
    return () => { isCurrent = false; clearTimeout(timer); };
  }, [text]);
  const wanted = text.toLowerCase();
  return text ? conversations.value.filter((one) => one.title.toLowerCase().includes(wanted) || inTexts.has(one.id)) : null;
}

function List({ onChosen }) {
  const found = useFound();
  const shown = (found ?? conversations.value).slice(0, MAX_SHOWN);
  if (!shown.length) return html`<p class="sidebar-none faint">${t(found ? "chat.none_found" : "chat.none")}</p>`;
  return byDay(shown).map((group) => html`<section key=${group.key} class="day">
    <h2>${dayName(group)}</h2>
    <ul>${group.conversations.map((one) => html`<${Entry} key=${one.id} conversation=${one} onChosen=${onChosen} />`)}</ul>
  </section>`);
}

function dayName({ name, date }) {
  if (name) return t(`chat.day.${name}`);
  return date.toLocaleDateString(language.value, { month: "long", year: "numeric" });
}

function Entry({ conversation, onChosen }) {
  const isCurrent = current.value?.id === conversation.id && conversation.id !== draft.value.id;
  if (renaming.value === conversation.id) return html`<li class="entry"><${Renaming} conversation=${conversation} /></li>`;
  const choose = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    goTo(conversationHash(addressIdOf(conversation)));
    onChosen();
  };
  return html`<li class=${isCurrent ? "entry current" : "entry"}>
    <a href=${conversationHash(addressIdOf(conversation))} class="one-line" aria-current=${isCurrent ? "page" : undefined} onClick=${choose}>${conversation.title || t("chat.untitled")}</a>
    ${answeringIn.value.has(conversation.id) && html`<${Icon} name="loader-circle" spin label=${t("chat.running")} />`}
    ${conversation.place === "server" && html`<${Icon} name="server" label=${t("chat.on_server")} />`}
    <${Menu} icon="ellipsis" label=${t("chat.more_of", { title: conversation.title })} small end items=${conversationActions(conversation)} />
  </li>`;
}
