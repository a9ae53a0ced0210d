/**
 * The button of a demo that really kills the server, in the middle of an answer. While none is written it offers to ask
 * for a story first: a small model writes faster than one can click. The page of any other server has no such button.
 */

import { call } from "../app/api.js";
import { html, useEffect, useRef, useState } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Dialog, toast } from "../design/components.js";

const CAN_BE_KILLED = document.documentElement.classList.contains("tis-can-be-killed");
const ENOUGH_TO_SEE = 60; // characters of the answer
const PAUSE_MILLISECONDS = 5000;

/** `answer` is the last one of the conversation, `isRunning` whether it is being written. */
export function KillButton({ answer, isRunning, onSend }) {
  const [waits, setWaits] = useState(false);
  const [offers, setOffers] = useState(false);
  const [killed, setKilled] = useState(false);
  const isKilling = useRef(false);
  const canBeSeen = isRunning && (answer?.text?.length ?? 0) >= ENOUGH_TO_SEE;
  useEffect(() => {
    if (!waits || !canBeSeen || isKilling.current) return;
    isKilling.current = true;
    setWaits(false);
    setKilled(true);
    killServer();
    setTimeout(() => {
      isKilling.current = false;
      setKilled(false);
    }, PAUSE_MILLISECONDS);
  }, [waits, canBeSeen]);
  if (!CAN_BE_KILLED) return null;
  const start = () => {
    setOffers(false);
    setWaits(true);
    if (!isRunning) onSend({ text: t("chat.kill.story"), attachments: [] });
  };
  const close = () => setOffers(false);
  const footer = html`<${Button} onClick=${close}>${t("cancel")}<//><${Button} kind="danger" icon="skull" onClick=${start}>${t("chat.kill.idle.start")}<//>`;
  return html`<${Button} icon="skull" kind="danger" small class="kill-button" label=${t("chat.kill.why")} disabled=${waits || killed} onClick=${isRunning ? start : () => setOffers(true)}><span>${t("chat.kill")}</span><//>
    ${offers && html`<${Dialog} title=${t("chat.kill")} onClose=${close} footer=${footer}><p>${t("chat.kill.idle")}</p><//>`}`;
}

/** The process may die before it has said that it will. */
async function killServer() {
  await call("pages/kill", { method: "POST" }).then(
    () => toast(t("chat.kill.done"), "skull"),
    (error) => toast(error.isUnreachable ? t("chat.kill.done") : error.message, "skull"),
  );
}
