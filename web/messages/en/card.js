/** The reader of identity cards. web/messages/id/card.js has the same names. */

export default {
};
