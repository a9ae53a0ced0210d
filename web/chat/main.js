/** The chat page: what the address names is shown; answers that ran go on. */

import { effect, html, render, untracked } from "../app/view.js";
import { Overlays } from "../design/shell.js";
import { learnWords, t } from "../app/words.js";
import { toast } from "../design/components.js";
import { resumeRunning } from "./answers/answering.js";
import { ChatPage } from "./layout.js";
import { refresh } from "./sidebar/server_copy.js";
import { areMessagesLoaded, conversations, current, isLoaded, loadConversations, loadMessages, messageOf, path, shownDeleted, tree } from "./conversations/conversations.js";
import chatEn from "../messages/en/chat.js";
import chatId from "../messages/id/chat.js";
import chatSettingsEn from "../messages/en/chat_settings.js";
import chatSettingsId from "../messages/id/chat_settings.js";

learnWords({ en: chatEn, id: chatId }, { en: chatSettingsEn, id: chatSettingsId });
render(html`<${ChatPage} /><${Overlays} />`, document.getElementById("app"));

await loadConversations();
shownDeleted.add(() => toast(t("chat.deleted_elsewhere"), "trash-2"));

effect(() => {
  if (isLoaded.value && current.value) untracked(loadMessages);
});

/** What another browser has added to a conversation that the server keeps. */
effect(() => {
  if (!areMessagesLoaded.value) return;
  untracked(() => { if (current.value?.place === "server") refresh(current.value).catch(() => {}); });
});

effect(() => {
  tree.value;
  const shown = path.value;
  if (!areMessagesLoaded.value) return;
  untracked(() => {
    const conversation = current.value;
    if (conversation && conversations.value.includes(conversation)) resumeRunning(conversation, shown.map(messageOf));
  });
});
