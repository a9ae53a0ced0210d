/** The frame of the chat: conversations at the side, the thread in the middle, the composer below it. */

import { later } from "../app/later.js";
import { Button, Icon, Note, toast } from "../design/components.js";
import { TopBar } from "../design/shell.js";
import { KillButton } from "./kill_button.js";
import { readChoice, writeChoice } from "../app/choices.js";
import { computed, html, signal, useEffect, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { goTo, place } from "./conversations/address.js";
import { send, stop } from "./answers/answering.js";
import { said } from "./answers/said.js";
import { isRunning } from "./answers/run_answer.js";
import { Composer, focusComposer } from "./composer/composer.js";
import { areMessagesLoaded, changeConversation, current, isLoaded, messageOf, messageSignal, path } from "./conversations/conversations.js";
import { EmptyState } from "./empty.js";
import { onShortcut } from "./shortcuts.js";
import { ModelPicker } from "./models/model_picker.js";
import { ConversationMenu, DeleteDialog, RenameDialog } from "./sidebar/conversation_menu.js";
import { EnlargedPicture } from "./markdown/enlarged_picture.js";
import { openFromServer } from "./sidebar/server_copy.js";
import { ShareDialog } from "./answers/share.js";
import { Sidebar, SidebarDrawer } from "./sidebar/sidebar.js";
import { StorageNote } from "./storage_note.js";
import { Thread } from "./thread/thread.js";
import { Watch } from "./thread/watch.js";

const SettingsDrawer = later(async () => (await import("./settings/settings_drawer.js")).SettingsDrawer, () => {
  settingsOpen.value = false;
  toast(t("server.unreachable"), "wifi-off");
});

const isNarrow = matchMedia("(max-width: 56rem)");
const narrow = signal(isNarrow.matches);
const sidebarOpen = signal(!isNarrow.matches && readChoice("chat.sidebar") !== "closed");
const settingsOpen = signal(false);

isNarrow.addEventListener("change", () => {
  narrow.value = isNarrow.matches;
  sidebarOpen.value = !isNarrow.matches && readChoice("chat.sidebar") !== "closed";
});

function stopRunning() {
  if (!runningId.peek()) return false;
  stop(messageOf(runningId.peek()));
  return true;
}

function toggleSidebar() {
  sidebarOpen.value = !sidebarOpen.value;
  if (!narrow.value) writeChoice("chat.sidebar", sidebarOpen.value ? null : "closed");
}

export function ChatPage() {
  const conversation = current.value;
  // The empty state has a heading of its own.
  const isEmpty = place.value.kind !== "watch" && conversation && areMessagesLoaded.value && !path.value.length;
  const title = place.value.kind === "watch" ? t("chat.watching") : conversation?.title || t("page.chat");
  useEffect(() => { document.title = title; }, [title]);
  useEffect(() => {
    const onKey = (event) => onShortcut(event, { openSidebar: () => { sidebarOpen.value = true; }, stopRunning });
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const start = html`<${Button} icon=${narrow.value ? "menu" : "panel-left"} kind="quiet" label=${t("chat.conversations")} aria-expanded=${sidebarOpen.value} onClick=${toggleSidebar} />`;
  const closeDrawer = () => { sidebarOpen.value = false; };
  return html`<div class="page chat-page">
    <a class="skip-link" href="#content" onClick=${skip}>${t("skip.to.content")}</a>
    <${TopBar} current="" start=${start} end=${place.value.kind !== "watch" && html`<${BarEnd} conversation=${conversation} />`} />
    <div class="chat-body">
      ${sidebarOpen.value && !narrow.value && html`<${Sidebar} />`}
      ${sidebarOpen.value && narrow.value && html`<${SidebarDrawer} onClose=${closeDrawer} />`}
      <main class="chat-main" id="content" tabindex="-1">${!isEmpty && html`<h1 class="visually-hidden">${title}</h1>`}<${Content} conversation=${conversation} /></main>
    </div>
    ${settingsOpen.value && conversation && html`<${SettingsDrawer} conversation=${conversation} onChange=${changeSettings} onClose=${() => { settingsOpen.value = false; }} />`}
    <${ShareDialog} /><${DeleteDialog} /><${RenameDialog} /><${EnlargedPicture} /><${Announcements} />
  </div>`;
}

/** The address belongs to the conversation: the link moves the focus without changing it. */
function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}

function BarEnd({ conversation }) {
  if (!conversation) return null;
  return html`<${KillHere} /><${ModelPicker} conversation=${conversation} onChange=${changeSettings} />
    <${Button} icon="sliders-horizontal" kind="quiet" label=${t("chat.settings")} onClick=${() => { settingsOpen.value = true; }} />
    <${ConversationMenu} conversation=${conversation} />`;
}

function KillHere() {
  const answer = messageSignal(path.value.at(-1))?.value.answer;
  return html`<${KillButton} answer=${answer} isRunning=${isRunning(answer)} onSend=${sendHere} />`;
}

/** Takes a change of some settings, or the id of a model. */
function changeSettings(change) {
  const conversation = current.peek();
  const settings = typeof change === "string" || change === null ? { model: change } : change;
  changeConversation(conversation.id, { settings: { ...conversation.settings, ...settings } });
}

function sendExample(message) {
  sendHere(message);
  focusComposer();
}

function stopHere() {
  stopRunning();
  focusComposer();
}

function sendHere(message) {
  return send(current.peek(), path.peek().at(-1) ?? null, message);
}

function Content({ conversation }) {
  if (!isLoaded.value) return null;
  if (place.value.kind === "watch") return html`<${Watch} ...${place.value} key=${place.value.sessionId} />`;
  if (!conversation) return html`<${NotHere} />`;
  if (!areMessagesLoaded.value) return html`<div class="grow"></div>`;
  const isEmpty = !path.value.length;
  return html`${isEmpty ? html`<div class="chat-empty scroll"><${EmptyState} conversation=${conversation} onSend=${sendExample} /></div>` : html`<${Thread} conversation=${conversation} key=${conversation.id} />`}
    <div class="chat-bottom"><${StorageNote} conversation=${conversation} /><${Composer} conversation=${conversation} running=${Boolean(runningId.value)} onSend=${sendHere} onStop=${stopHere} /></div>`;
}

/** The last answer that is shown, while it runs. A computed value: the frame is not drawn with each token. */
const runningId = computed(() => {
  const message = messageSignal(path.value.at(-1))?.value;
  return isRunning(message?.answer) ? message.id : null;
});

/** The address names a conversation of another browser: its running answer may be here to read. */
function NotHere() {
  const { sessionId, conversationId } = place.value;
  if (conversationId.startsWith("conv_")) return html`<${OpenFromServer} serverId=${conversationId} />`;
  if (sessionId) return html`<${Watch} sessionId=${sessionId} token="" question="" note=${t("chat.other_browser")} />`;
  return html`<div class="chat-empty"><div class="stack"><${Note} kind="warn">${t("chat.not_here")}<//>
    <${Button} icon="square-pen" onClick=${() => goTo("#/")}>${t("chat.new")}<//></div></div>`;
}

function OpenFromServer({ serverId }) {
  const [error, setError] = useState(null);
  useEffect(() => { openFromServer(serverId).catch(setError); }, [serverId]);
  return html`<div class="chat-empty">${error
    ? html`<${Note} kind="warn">${error.status === 404 ? t("chat.server.gone") : error.message}<//>`
    : html`<p class="soft" role="status"><${Icon} name="loader-circle" spin /> ${t("chat.server.opening")}</p>`}</div>`;
}

const ANNOUNCED = { running: "chat.said.running", done: "chat.said.done", stopped: "chat.said.stopped", failed: "chat.said.failed",
  reconnecting: "chat.said.reconnecting", busy: "chat.said.busy", resumed: "chat.said.resumed" };

function Announcements() {
  return html`<div class="visually-hidden" role="status">${ANNOUNCED[said.value] ? t(ANNOUNCED[said.value]) : ""}</div>`;
}
