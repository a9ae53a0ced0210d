/** The talks of a shop: those that wait for it, which the menu of parts counts, and all. */

import { computed } from "../../app/view.js";
import { has, t } from "../../app/words.js";
import { toast } from "../../design/components.js";
import { followTalks, talkList } from "../../market/talks/talk_calls.js";

const MAX_COUNTED = 100;

export const waitingTalks = talkList();
export const allTalks = talkList();
export const numWaitingTalks = computed(() => waitingTalks.found.value?.items.length ?? 0);

const pathOf = (shopId) => `api/suppliers/${shopId}/talks`;
export const readWaiting = (shopId) => waitingTalks.read(pathOf(shopId), { unanswered: true, limit: MAX_COUNTED });
export const readAll = (shopId) => allTalks.read(pathOf(shopId));

/** Until the returned function is called: follows the talks of this shop, whatever part is shown. */
export function followTalksOfShop(shopId) {
  readWaiting(shopId);
  return followTalks("shop", [waitingTalks, allTalks], (notice, isShown) => {
    const message = notice.type.replace("message.", "talk.news.");
    if (notice.supplier_id === shopId && !isShown && has(message)) toast(t(message), "message-circle");
  });
}
