/** Titles from first words, and the days that conversations belong to. */

const MAX_TITLE = 60;

export function titleOf(text) {
  const words = text.replace(/[`*_#>]/g, "").replace(/\s+/g, " ").trim();
  if (words.length <= MAX_TITLE) return words;
  const cut = words.slice(0, MAX_TITLE);
  return `${cut.slice(0, cut.lastIndexOf(" ") > 20 ? cut.lastIndexOf(" ") : MAX_TITLE).replace(/[\s,.;:!?]+$/, "")}…`;
}

/** Conversations by day: `[{ name: "today" | "yesterday" | "week" | "month" | "", year, month, conversations }]`. */
export function byDay(conversations, now = Date.now()) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const groups = new Map();
  for (const one of conversations) {
    const age = midnight - one.updatedAt;
    const date = new Date(one.updatedAt);
    const name = age <= 0 ? "today" : age <= day ? "yesterday" : age <= 7 * day ? "week" : age <= 30 * day ? "month" : "";
    const key = name || `${date.getFullYear()}-${date.getMonth()}`;
    if (!groups.has(key)) groups.set(key, { key, name, date, conversations: [] });
    groups.get(key).conversations.push(one);
  }
  return [...groups.values()];
}
