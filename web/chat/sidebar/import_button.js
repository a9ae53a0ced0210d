/** Takes conversations from a file that the chat has exported. */

import { Button, toast } from "../../design/components.js";
import { html, useRef } from "../../app/view.js";
import { t } from "../../app/words.js";
import { takeConversation } from "../conversations/conversations.js";
import { storedAttachments } from "../conversations/stored_attachments.js";
import { ImportError, importedOf, MAX_IMPORT_BYTES } from "../conversations/exporting.js";

export function ImportButton({ onDone }) {
  const ref = useRef(null);
  const onFile = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      if (file.size > MAX_IMPORT_BYTES) throw new ImportError("chat.import.too_large");
      const { conversation, messages } = importedOf(await file.text(), file.name);
      for (const message of messages) message.attachments = await storedAttachments(message.attachments);
      await takeConversation(conversation, messages);
      onDone();
    } catch (fault) {
      if (!(fault instanceof ImportError)) throw fault;
      toast(t(fault.message), "circle-alert");
    }
  };
  return html`<${Button} kind="quiet" small icon="upload" onClick=${() => ref.current.click()}>${t("chat.import")}<//>
    <input ref=${ref} type="file" hidden accept=".json,.md,application/json,text/markdown" aria-label=${t("chat.import")} onChange=${onFile} />`;
}
