/**
 * The button of a demo that really kills the server, in the middle of an answer. While none is written it offers to ask
 * for a story first. The server waits for an answer that can be seen: a small model writes faster than one can click.
 * The page of any other server has no such button.
 */

import { call } from "../app/api.js";
import { html, useEffect, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Dialog, toast } from "../design/components.js";

const CAN_BE_KILLED = document.documentElement.classList.contains("tis-can-be-killed");
const WAIT_MILLISECONDS = 30_000; // as long as the server waits for an answer

/** `answer` is the last one of the conversation, `isRunning` whether it is being written. */
export function KillButton({ answer, isRunning, onSend }) {
  const [waits, setWaits] = useState(false);
  const [offers, setOffers] = useState(false);
  const isLost = answer?.status === "reconnecting";
  useEffect(() => {
    if (!waits || !isLost) return;
    setWaits(false);
    toast(t("chat.kill.done"), "skull");
  }, [waits, isLost]);
  useEffect(() => {
    if (!waits) return;
    const timer = setTimeout(() => setWaits(false), WAIT_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [waits]);
  if (!CAN_BE_KILLED) return null;
  const start = async () => {
    setOffers(false);
    setWaits(true);
    try {
      await call("pages/kill", { method: "POST" });
    } catch (error) {
      // The process may die before it has said that it will.
      if (!error.isUnreachable) {
        setWaits(false);
        return toast(error.message, "skull");
      }
    }
    if (!isRunning) onSend({ text: t("chat.kill.story"), attachments: [] });
  };
  const close = () => setOffers(false);
  const footer = html`<${Button} onClick=${close}>${t("cancel")}<//><${Button} kind="danger" icon="skull" onClick=${start}>${t("chat.kill.idle.start")}<//>`;
  return html`<${Button} icon="skull" kind="danger" small class="kill-button" label=${t("chat.kill.why")} disabled=${waits || isLost} onClick=${isRunning ? start : () => setOffers(true)}><span>${t("chat.kill")}</span><//>
    ${offers && html`<${Dialog} title=${t("chat.kill")} onClose=${close} footer=${footer}><p>${t("chat.kill.idle")}</p><//>`}`;
}
