// Values of files that others wrote: each knows its file, its line and its path, and whether a reader has taken it.
// What nobody has taken is reported (sweep.ts).

export interface Place {
  file: string;
  line: number;
  /** `services.web.ports.0` */
  path: string;
}

export type Node = Place & {
  /** Taken over, or reported. */
  isTaken: boolean;
  /** The original has an anchor, so its values may be in other places, too. */
  isAnchor?: true;
  tag?: string;
  /** Names of variables in it that have no value. */
  unset?: readonly string[];
  /** The value of a variable that looks like a secret is in it. */
  hasSecret?: true;
} & (
    | { is: 'map'; entries: Map<string, Node> }
    | { is: 'list'; items: Node[] }
    | { is: 'scalar'; value: string | number | boolean | null; source: string }
  );

/** The value of a key, which counts as taken; what is below it does not. */
export function take(node: Node | undefined, ...names: readonly string[]): Node | undefined {
  let found: Node | undefined = node;
  for (const name of names) {
    found = found?.is === 'map' ? found.entries.get(name) : undefined;
    if (found) found.isTaken = true;
  }
  return found && isNull(found) ? undefined : found;
}

/** As `take`, without taking it. */
export const peek = (node: Node | undefined, name: string): Node | undefined =>
  node?.is === 'map' ? node.entries.get(name) : undefined;

export const isNull = (node: Node): boolean => node.is === 'scalar' && node.value === null;

/** The node with all that is below it. */
export function takeAll(node: Node): void {
  node.isTaken = true;
  for (const one of childNodesOf(node)) takeAll(one);
}

export function childNodesOf(node: Node): Node[] {
  if (node.is === 'map') return [...node.entries.values()];
  return node.is === 'list' ? node.items : [];
}

/** The text of a scalar, as it is written. Null for anything else. */
export function nodeText(node: Node | undefined): string | null {
  if (!node || node.is !== 'scalar' || node.value === null) return null;
  node.isTaken = true;
  return typeof node.value === 'string' ? node.value : node.source;
}

/** A number, also of a text such as `"3"`. */
export function numberOf(node: Node | undefined): number | null {
  const text = nodeText(node);
  return text !== null && /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : null;
}

/** true or false, also of the texts. */
export function flagOf(node: Node | undefined): boolean | null {
  const text = nodeText(node)?.toLowerCase();
  return text === 'true' || text === 'false' ? text === 'true' : null;
}

/** The texts of a list, or the one text. Null where something else is in it. */
export function textsOf(node: Node | undefined): string[] | null {
  if (!node) return null;
  const one = nodeText(node);
  if (one !== null) return [one];
  if (node.is !== 'list') return null;
  const texts = node.items.map(nodeText);
  return texts.some((text) => text === null) ? null : (texts as string[]);
}

/** The items of a list; none for anything else. Each counts as taken. */
export function itemsOf(node: Node | undefined): Node[] {
  if (node?.is !== 'list') return [];
  for (const item of node.items) item.isTaken = true;
  return node.items;
}

/** Keys and values of a mapping. Each value counts as taken. */
export function nodeEntries(node: Node | undefined): [string, Node][] {
  if (node?.is !== 'map') return [];
  for (const one of node.entries.values()) one.isTaken = true;
  return [...node.entries];
}

/** A node that no file has, at the place of another one. */
export function scalarAt(place: Place, value: string): Node {
  const { file, line, path } = place;
  return { is: 'scalar', file, line, path, value, source: value, isTaken: true };
}
