/** Ends an answer at the server, also one that has not begun there. */

import { ApiError, call } from "../../app/api.js";
import { wait } from "./waits.js";

const TRIES = 20;
const PAUSE_MILLISECONDS = 1500;

/** `path` is that of the API. True if the server knows the answer. */
export async function cancel(path) {
  try {
    const { status } = await (await call(path, { method: "POST", ask: false })).json();
    return status !== "unknown";
  } catch (fault) {
    if (!(fault instanceof ApiError)) throw fault;
    return false;
  }
}

/** A request that waits may begin the answer after it was stopped. */
export async function cancelLater(path) {
  for (let number = 0; number < TRIES; number++) {
    await wait(PAUSE_MILLISECONDS);
    if (await cancel(path)) return;
  }
}
