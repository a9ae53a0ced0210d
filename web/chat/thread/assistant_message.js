/** An answer with what one can do with it. */

import { later } from "../../app/later.js";
import { Button, CopyButton, Menu, toast } from "../../design/components.js";
import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { continueAnswer, decide, regenerate, requestToShow, resume } from "../answers/answering.js";
import { isRunning } from "../answers/run_answer.js";
import { AnswerBody } from "./answer_body.js";
import { AnswerStats } from "./answer_stats.js";
import { Branches } from "./branches.js";
import { deleteMessage } from "../conversations/conversations.js";
import { sharing } from "../answers/share.js";

const CodeDialog = later(async () => (await import("./code_dialog.js")).CodeDialog, () => toast(t("server.unreachable"), "wifi-off"));
const CONTINUED = new Set(["session_lost", "replay_gap", "server_shutting_down", "unreachable"]);

export function AssistantMessage({ message, conversation, isLast }) {
  const [shownRequest, setShownRequest] = useState(null);
  const [showsLogprobs, setShowsLogprobs] = useState(false);
  const { answer } = message;
  const running = isRunning(answer);
  const again = () => regenerate(conversation, message);
  const goOn = () => continueAnswer(conversation, message);
  const wasCut = answer.text && answer.api === "chat" && (answer.finishReason === "length" || answer.status === "stopped" || CONTINUED.has(answer.error?.code));
  const more = [
    answer.logprobs && { icon: "eye", label: t(showsLogprobs ? "chat.logprobs.hide" : "chat.logprobs.show"), onSelect: () => setShowsLogprobs(!showsLogprobs) },
    answer.request && { icon: "code", label: t("chat.as_code"), onSelect: async () => setShownRequest(await requestToShow(message)) },
    isLast && { icon: "share-2", label: t("chat.share"), onSelect: () => { sharing.value = conversation.id; } },
    { icon: "trash-2", label: t("chat.delete_answer"), danger: true, onSelect: () => deleteMessage(message) },
  ].filter(Boolean);
  return html`<article class="message assistant" aria-busy=${running}>
    <h2 class="visually-hidden">${t("chat.answer")}</h2>
    <${AnswerBody} answer=${answer} showsLogprobs=${showsLogprobs} onDecide=${(step, isApproved) => decide(conversation, message, step, isApproved)} onRetry=${again} onResume=${answer.cursor >= 0 || answer.error?.code === "unreachable" ? () => resume(conversation, message) : null} />
    ${!running && html`<div class="message-actions">
      <${Branches} message=${message} />
      <${CopyButton} text=${answer.text} />
      <${Button} small kind="quiet" icon="refresh-cw" label=${t("chat.regenerate")} onClick=${again} />
      ${wasCut && isLast && html`<${Button} small icon="play" onClick=${goOn}>${t("chat.continue")}<//>`}
      <${Menu} small icon="ellipsis" label=${t("chat.more")} items=${more} placement=${isLast ? "above" : "below"} />
      <${AnswerStats} answer=${answer} />
    </div>`}
    ${shownRequest && html`<${CodeDialog} request=${shownRequest} onClose=${() => setShownRequest(null)} />`}
  </article>`;
}
