/** Reads server-sent events of a response: `for await (const { id, event, data } of eventsOf(response))`. */

import { t } from "./words.js";

/** The connection broke while it was read: a fault of the network, not of this page. */
export class ConnectionLost extends Error {
  constructor() {
    super(t("server.unreachable"));
    this.name = "ConnectionLost";
  }
}

export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(lost);
      if (done) return;
      rest += value;
      if (!rest.includes("\n")) continue;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = eventOf(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Browsers say TypeError when the network fails. */
function lost(fault) {
  throw fault instanceof TypeError ? new ConnectionLost() : fault;
}

function eventOf(block) {
  const event = { id: null, event: "message", data: null };
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") event.data = event.data === null ? value : `${event.data}\n${value}`;
    else if (name === "id" || name === "event") event[name] = value;
  }
  return event.data === null ? null : event;
}
