/** The reader of identity cards. web/messages/en/card.js has the same names. */

export default {
};
