/** How long to wait before the next try, and waits that end early when there may be news. */

const FIRST_MILLISECONDS = 400;
const MOST_MILLISECONDS = 8000;
const MOST_OF_SERVER = 120_000;

/** Doubles with each try, up to a bound; a little chance keeps tabs apart. `retryAfter` (seconds) is the server's word. */
export function waitOf(tries, retryAfter = null) {
  if (retryAfter) return Math.min(MOST_OF_SERVER, retryAfter * 1000);
  return Math.min(MOST_MILLISECONDS, FIRST_MILLISECONDS * 2 ** Math.min(tries - 1, 8)) * (0.85 + Math.random() * 0.3);
}

/**
 * Resolves after `milliseconds`, or when `signal` aborts; with `isHasty` also when the network is back or the page is
 * seen again, which is no reason to ask a server sooner than it said.
 */
export function wait(milliseconds, { signal, isHasty = true } = {}) {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      removeEventListener("online", finish);
      document.removeEventListener("visibilitychange", onVisible);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const onVisible = () => { if (!document.hidden) finish(); };
    const timer = setTimeout(finish, milliseconds);
    if (isHasty) {
      addEventListener("online", finish);
      document.addEventListener("visibilitychange", onVisible);
    }
    signal?.addEventListener("abort", finish);
    if (signal?.aborted) finish();
  });
}

/**
 * Watches a response for silence. The server sends a keep-alive every 15 seconds: after `limit` without a byte the
 * connection is dead, even if no one has said so, as after the sleep of a laptop. Returns a response with the same bytes.
 */
export function watched(response, controller, limit) {
  let last = Date.now();
  let isOver = false;
  const check = () => { if (!isOver && Date.now() - last > limit) controller.abort("silence"); };
  const timer = setInterval(check, 1000);
  // A page that was asleep is seen again: what is silent for longer than a keep-alive is asked anew at once.
  const onAwake = () => { if (!document.hidden && Date.now() - last > limit / 2) controller.abort("silence"); };
  document.addEventListener("visibilitychange", onAwake);
  addEventListener("online", onAwake);
  const counted = new TransformStream({
    transform(chunk, out) {
      last = Date.now();
      out.enqueue(chunk);
    },
  });
  const release = () => {
    isOver = true;
    clearInterval(timer);
    document.removeEventListener("visibilitychange", onAwake);
    removeEventListener("online", onAwake);
  };
  return { response: { body: response.body.pipeThrough(counted) }, release };
}
