/** Which conversation this tab shows, for the way back from another page. */

const NAME = "tis.chat.last";

export function rememberChat(hash) {
  try {
    sessionStorage.setItem(NAME, hash);
  } catch {
    // Storage may be forbidden: then the way back leads to a new chat.
  }
}

export function lastChat() {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}
