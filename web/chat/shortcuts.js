/** Keys of the whole page: Ctrl+K searches, Ctrl+Shift+O begins anew, Escape stops, Up edits the last question. */

import { signal } from "../app/view.js";
import { goTo } from "./address.js";

/** Counts wishes: a view that shows the field takes the focus when the number changes. */
export const searchWished = signal(0);
/** Set to ask the last question to open its editor. */
export const editWished = signal(0);

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
