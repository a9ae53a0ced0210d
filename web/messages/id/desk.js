/** The desk of a shop. web/messages/en/desk.js has the same names. */

export default {
  "desk.sign.in": "Meja ini untuk mereka yang bekerja di sebuah toko.",
};
