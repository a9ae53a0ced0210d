/** The admin's desk. web/messages/id/admin.js has the same names. */

export default {
  "admin.sign.in": "This desk is for admins of the marketplace.",
};
