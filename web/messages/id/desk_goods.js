/** Goods and sheets at the desk of a shop. web/messages/en/desk_goods.js has the same names. */

export default {
};
