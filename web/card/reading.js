/** Sends the pictures that wait, a few at a time, and follows each through its stages. */

import { ApiError, call } from "../app/api.js";
import { eventsOf } from "../app/event_stream.js";
import { t, wordOr } from "../app/words.js";
import { cardOf, cards, change, controllerOf, keepAnswer } from "./cards.js";
import { openPicture } from "./picture.js";
import { reader } from "./reader_state.js";
import { thumbOf } from "./thumb.js";

const MAX_AT_ONCE = 2;
const MAX_TRIES = 6;
const MAX_WAIT_SECONDS = 30;
let numRunning = 0;

export function readWaiting() {
  for (;;) {
    const next = cards.value.find((card) => card.state === "waiting");
    if (!next || numRunning >= MAX_AT_ONCE) return;
    numRunning += 1;
    read(next).finally(() => {
      numRunning -= 1;
      readWaiting();
    });
  }
}

export function readAgain(id) {
  change(id, { state: "waiting", fault: null });
  readWaiting();
}

/** What is being read is read to its end. */
export function stopWaiting() {
  for (const card of cards.value) if (card.state === "waiting") change(card.id, { state: "failed", fault: { code: "stopped", message: t("card.fault.stopped"), seen: [] } });
}

async function read({ id, file }) {
  change(id, { state: "reading", stage: "sent" });
  const { signal } = controllerOf(id);
  let bitmap = null;
  try {
    const picture = await openPicture(file);
    bitmap = picture.bitmap;
    change(id, { sent: picture.blob });
    const answer = await patiently(() => ask(picture.blob, (stage) => change(id, { stage }), signal), signal);
    change(id, { thumb: bitmap && thumbOf(bitmap, answer) });
    keepAnswer(id, answer);
    reader.value = { state: "ready", reason: "" };
  } catch (fault) {
    if (cardOf(id) && !signal.aborted) change(id, { state: "failed", stage: null, fault: faultOf(fault) });
  } finally {
    bitmap?.close();
  }
}

async function ask(blob, onStage, signal) {
  const form = new FormData();
  form.set("image", blob, "card"); // the name of the file is nobody's business
  const answer = await call("ktp-ocr/", { method: "POST", body: form, headers: { Accept: "text/event-stream" }, signal });
  for await (const { event, data } of eventsOf(answer)) {
    const said = JSON.parse(data);
    if (event === "stage") onStage(said.stage);
    else if (event === "result") return said;
    else if (event === "error") throw new ApiError(said.status, said.detail.message, { code: said.detail.code, body: said });
  }
  throw new ApiError(0, t("server.unreachable"));
}

/** A busy server is asked again, when it says so. */
async function patiently(work, signal) {
  for (let turn = 1; ; turn++) {
    try {
      return await work();
    } catch (fault) {
      if (fault.status !== 429 || turn === MAX_TRIES) throw fault;
      await pause(Math.min(fault.retryAfter ?? turn, MAX_WAIT_SECONDS), signal);
    }
  }
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** `seen`: what is wrong with a picture on which no card was found. */
function faultOf(fault) {
  const code = fault.code ?? (fault.status === 0 || fault.name === "ConnectionLost" ? "unreachable" : null);
  const quality = fault.body?.detail?.seen?.quality ?? {};
  const seen = Object.keys(quality).filter((name) => quality[name] === true);
  return { code, message: wordOr(`card.fault.${code}`, fault.message), seen };
}
