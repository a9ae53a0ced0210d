/** Reads events of responses into an answer: the same functions as `chat_reader.js`. */

import { chatReader } from "./chat_reader.js";

export const responseReader = { ...chatReader };
