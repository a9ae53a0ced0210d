/** What one does with a whole conversation: rename, share, export, keep on the server, delete. */

import { Button, Dialog, Menu } from "../../design/components.js";
import { html, signal, useEffect, useRef } from "../../app/view.js";
import { t } from "../../app/words.js";
import { changeConversation, conversations, deleteConversation } from "../conversations/conversations.js";
import { exportConversation } from "../conversations/exporting.js";
import { sharing } from "../answers/share.js";
import { keepInBrowser, keepOnServer, renameOnServer } from "./server_copy.js";

export const renaming = signal("");
const renamingInDialog = signal("");
export const deleting = signal("");
const MAX_TITLE = 200;

/** `renames` is the signal that shows a field for the title: in the list, or in a dialog. */
export function conversationActions(conversation, renames = renaming) {
  const isOnServer = conversation.place === "server";
  return [
    { icon: "pencil", label: t("chat.rename"), onSelect: () => { renames.value = conversation.id; } },
    { icon: "download", label: t("chat.export_markdown"), onSelect: () => exportConversation(conversation, "markdown") },
    { icon: "braces", label: t("chat.export_json"), onSelect: () => exportConversation(conversation, "json") },
    isOnServer
      ? { icon: "hard-drive", label: t("chat.keep_in_browser"), onSelect: () => keepInBrowser(conversation) }
      : { icon: "server", label: t("chat.keep_on_server"), onSelect: () => keepOnServer(conversation) },
    { icon: "trash-2", label: t("delete"), danger: true, onSelect: () => { deleting.value = conversation.id; } },
  ];
}

/** In the bar: the same actions for the conversation that is shown, and a link to watch it. */
export function ConversationMenu({ conversation }) {
  if (!conversations.value.includes(conversation)) return null;
  const share = { icon: "share-2", label: t("chat.share"), onSelect: () => { sharing.value = conversation.id; } };
  return html`<${Menu} icon="ellipsis" label=${t("chat.more")} end items=${[share, ...conversationActions(conversation, renamingInDialog)]} />`;
}

function rename(conversation, given) {
  const title = given.trim().slice(0, MAX_TITLE);
  if (!title || title === conversation.title) return;
  changeConversation(conversation.id, { title });
  renameOnServer({ ...conversation, title });
}

/** In the list, in the place of the title. */
export function Renaming({ conversation }) {
  const ref = useRef(null);
  useEffect(() => {
    ref.current.focus();
    ref.current.select();
  }, []);
  const finish = () => {
    if (renaming.peek() !== conversation.id) return;
    renaming.value = "";
    rename(conversation, ref.current.value);
  };
  const onKey = (event) => {
    if (event.key === "Enter") finish();
    if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); renaming.value = ""; }
  };
  return html`<input ref=${ref} class="input" aria-label=${t("chat.title")} maxlength=${MAX_TITLE} value=${conversation.title} onBlur=${finish} onKeyDown=${onKey} />`;
}

export function RenameDialog() {
  const ref = useRef(null);
  const conversation = conversations.value.find((one) => one.id === renamingInDialog.value);
  if (!conversation) return null;
  const close = () => { renamingInDialog.value = ""; };
  const submit = (event) => { event.preventDefault(); close(); rename(conversation, ref.current.value); };
  return html`<${Dialog} title=${t("chat.rename")} onClose=${close}><form class="stack" onSubmit=${submit}>
    <input ref=${ref} class="input" aria-label=${t("chat.title")} maxlength=${MAX_TITLE} value=${conversation.title} autofocus />
    <div class="row"><div class="grow"></div><${Button} onClick=${close}>${t("cancel")}<//><${Button} kind="primary" type="submit">${t("save")}<//></div>
  </form><//>`;
}

export function DeleteDialog() {
  const conversation = conversations.value.find((one) => one.id === deleting.value);
  if (!conversation) return null;
  const close = () => { deleting.value = ""; };
  const confirm = () => { close(); deleteConversation(conversation.id); };
  const footer = html`<${Button} onClick=${close}>${t("cancel")}<//><${Button} kind="danger" icon="trash-2" onClick=${confirm}>${t("delete")}<//>`;
  return html`<${Dialog} title=${t("chat.delete.title")} onClose=${close} footer=${footer}><p>${t("chat.delete.why", { title: conversation.title })}</p><//>`;
}
