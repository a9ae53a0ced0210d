/** Categories as a tree, and as the list of its lines from above. */

/** `[{ ...category, name, depth, children }]`, by name; one whose parent is unknown stands at the top. */
export function treeOf(categories, nameOf) {
  const nodes = new Map(categories.map((one) => [one.slug, { ...one, name: nameOf(one), children: [] }]));
  const tops = [];
  for (const node of nodes.values()) (nodes.get(node.parent)?.children ?? tops).push(node);
  const sorted = (list, depth) => list.sort((one, other) => one.name.localeCompare(other.name)).map((node) => ({ ...node, depth, children: sorted(node.children, depth + 1) }));
  return sorted(tops, 0);
}

export const linesOf = (tree) => tree.flatMap((node) => [node, ...linesOf(node.children)]);

/** The slugs of a category and all below it: none of them can be its parent. */
export function slugsBelow(tree, slug) {
  const found = linesOf(tree).find((node) => node.slug === slug);
  return new Set(found ? linesOf([found]).map((node) => node.slug) : []);
}
