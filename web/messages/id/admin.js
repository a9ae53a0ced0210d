/** The admin's desk. web/messages/en/admin.js has the same names. */

export default {
  "admin.sign.in": "Meja ini untuk admin marketplace.",
};
