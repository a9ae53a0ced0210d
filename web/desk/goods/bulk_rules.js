/** What a rule makes of a price and of a stock. Pure functions. */

export const ROUNDINGS = [1, 100, 500, 1000];
const MAX_RUPIAH = 10_000_000_000_000;
const MAX_STOCK = 1_000_000_000;

/** A signed number as people type it: "-5,5", "+1.000", "Rp 2.500"; null for anything else. `isWhole`: no decimals. */
export function amountOf(text, isWhole = true) {
  const plain = text.trim().replace(/^([+-]?)\s*rp\.?\s*/i, "$1").replace(/\s/g, "");
  const number = isWhole ? plain.replace(/[.,](?=[0-9]{3}(?:[^0-9]|$))/g, "") : plain.replace(",", ".");
  return (isWhole ? /^[+-]?[0-9]{1,13}$/ : /^[+-]?[0-9]{1,4}(\.[0-9]{1,4})?$/).test(number) ? Number(number) : null;
}

/** `how`: "percent", "amount" or "value"; `step`: to which multiple it is rounded. */
export function newPrice(price, { how, amount, step }) {
  const exact = how === "percent" ? (price * (100 + amount)) / 100 : how === "amount" ? price + amount : amount;
  return Math.round(exact / step) * step;
}

/** `how`: "by" or "value". */
export const newStock = (stock, { how, amount }) => (how === "by" ? stock + amount : amount);

export const isPossiblePrice = (price) => price >= 1 && price <= MAX_RUPIAH;
export const isPossibleStock = (stock, reserved) => stock >= reserved && stock <= MAX_STOCK;

/**
 * Of each product that changes: `{ product, price: [old, new], stock: [old, new], isPossible }`, without a pair for what stays. A rule is null
 * if it changes nothing.
 */
export function previewOf(products, priceRule, stockRule) {
  const rows = products.map((product) => {
    const price = priceRule && newPrice(product.price, priceRule);
    const stock = stockRule && newStock(product.stock_quantity, stockRule);
    const reserved = product.stock_quantity - product.available_quantity;
    return {
      product,
      price: price !== null && price !== product.price ? [product.price, price] : null,
      stock: stock !== null && stock !== product.stock_quantity ? [product.stock_quantity, stock] : null,
      isPossible: (price === null || isPossiblePrice(price)) && (stock === null || isPossibleStock(stock, reserved)),
    };
  });
  return rows.filter((row) => row.price || row.stock);
}

/** What the server is asked for. Units more or fewer are sent as such: what is sold meanwhile stays sold. */
export function entriesOf(rows, stockRule) {
  return rows.map(({ product, price, stock }) => ({
    id: product.id,
    version: product.version,
    ...(price && { price: price[1] }),
    ...(stock && (stockRule.how === "by" ? { stock_by: stockRule.amount } : { stock_quantity: stock[1] })),
  }));
}

/** What undoes the changes that the server has reported. */
export function reversed(changedProducts) {
  return changedProducts.map(({ id, version, changes: { stock_quantity: stock, ...others } }) => ({
    id,
    version,
    ...Object.fromEntries(Object.entries(others).map(([name, [before]]) => [name, before])),
    ...(stock && { stock_by: stock[0] - stock[1] }),
  }));
}
