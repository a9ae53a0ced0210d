/** The talks of whoever shops. */

import { talkList } from "../../market/talks/talk_calls.js";

export const ownTalks = talkList();
