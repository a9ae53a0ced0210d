/** English. Names are grouped by page; web/messages/id.js has the same names. */

export default {
  close: "Close",
  cancel: "Cancel",
  copy: "Copy",
  copied: "Copied",
  save: "Save",
  "delete": "Delete",
  "skip.to.content": "Skip to the content",

  "page.home": "Transformers Inference Server, home",
  "page.all": "Pages",
  "page.chat": "Chat",
  "page.status": "Status",
  "page.docs": "API",
  preferences: "Theme and language",
  "theme.system": "As the system",
  "theme.light": "Light",
  "theme.dark": "Dark",

  "key.api": "API key",
  "key.api.why": "This server answers to those who have a key. The key goes to this server only.",
  "key.admin": "Admin key",
  "key.admin.why": "Loading and unloading models needs the admin key of this server (ADMIN_KEY).",
  "key.wrong": "The server did not accept this key.",
  "key.remember": "Remember it until this tab is closed",
  "key.use": "Use this key",
  "key.forget": "Forget the key",
};
