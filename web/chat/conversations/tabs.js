/** News between the tabs of this browser: which conversation has changed. */

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("tis.chat");
const listeners = new Set();

if (channel) channel.onmessage = (event) => listeners.forEach((listener) => listener(event.data));

export function announce(news) {
  channel?.postMessage(news);
}

export function onNews(listener) {
  listeners.add(listener);
}
