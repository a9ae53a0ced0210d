/** The desk of a shop. web/messages/id/desk.js has the same names. */

export default {
  "desk.sign.in": "The desk is for those who work for a shop.",
};
