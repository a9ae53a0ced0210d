/** Keys of the whole page: Ctrl+K searches, Ctrl+Shift+O begins anew, Escape stops, Up edits the last question. */

import { goTo } from "./conversations/address.js";
import { searchWished } from "./sidebar/sidebar.js";
import { editWished } from "./thread/user_message.js";

export function onShortcut(event, { openSidebar, stopRunning }) {
  const isCommand = event.ctrlKey || event.metaKey;
  if (document.querySelector("dialog[open]:not(.sidebar-drawer)")) return;
  if (isCommand && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openSidebar();
    searchWished.value += 1;
  } else if (isCommand && event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    goTo("#/");
  } else if (event.key === "Escape" && !event.isComposing && !event.defaultPrevented && !event.target.closest?.(".menu, .editor, .search, .recording")) {
    if (stopRunning()) event.preventDefault();
  } else if (event.key === "ArrowUp" && !isCommand && !event.shiftKey && isEmptyComposer(event.target)) {
    event.preventDefault();
    editWished.value += 1;
  }
}

function isEmptyComposer(target) {
  return target.matches?.("textarea") && Boolean(target.closest(".chat-bottom")) && !target.value;
}
