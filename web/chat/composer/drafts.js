/** What is written but not sent, for each conversation, while the page is open. */

const MAX_DRAFTS = 30;
const drafts = new Map();

export function draftOf(id) {
  return drafts.get(id ?? "") ?? { text: "", attachments: [] };
}

export function keepDraft(id, draft) {
  drafts.delete(id ?? "");
  if (!draft.text && !draft.attachments.length) return;
  drafts.set(id ?? "", draft);
  if (drafts.size > MAX_DRAFTS) drafts.delete(drafts.keys().next().value);
}
