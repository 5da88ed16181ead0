// `${NAME}` in a Compose file, as its specification says.
import { childNodesOf, type Node } from '../node';
import { countCharacters, note, type ImportRun } from '../run';
import { isLikelySecret } from '../secrets';

export interface Expanded {
  text: string;
  /** Names that have no value. */
  unset: string[];
}

export type Lookup = (name: string) => string | undefined;

const DEPTH_MAX = 16;
const LENGTH_MAX = 65_536;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;

/** Replaces the variables of a text. Null for one that cannot be read, nests too deeply or becomes too long. */
export function expand(text: string, lookup: Lookup): Expanded | null {
  const unset: string[] = [];
  const expanded = expandInto(text, lookup, unset, 0);
  return expanded === null ? null : { text: expanded, unset };
}

function expandInto(text: string, lookup: Lookup, unset: string[], depth: number): string | null {
  if (depth > DEPTH_MAX) return null;
  let out = '';
  for (let at = 0; at < text.length;) {
    const next = text.indexOf('$', at);
    if (next < 0) return bounded(out + text.slice(at));
    out += text.slice(at, next);
    const after = text[next + 1];
    const [bare] = NAME.exec(text.slice(next + 1, next + 257)) ?? [];
    if (after === '{') {
      const end = closingBrace(text, next + 2);
      const value = end < 0 ? null : expandBraces(text.slice(next + 2, end), lookup, unset, depth);
      if (value === null) return null;
      out += value;
      at = end + 1;
    } else if (bare !== undefined) {
      out += valueOf(bare, lookup, unset);
      at = next + 1 + bare.length;
    } else {
      out += '$';
      at = next + (after === '$' ? 2 : 1);
    }
    if (bounded(out) === null) return null;
  }
  return bounded(out);
}

const bounded = (text: string): string | null => (text.length > LENGTH_MAX ? null : text);

function closingBrace(text: string, from: number): number {
  let open = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text.startsWith('${', at)) open += 1;
    else if (text[at] === '}') open -= 1;
    if (open === 0) return at;
  }
  return -1;
}

/** What is between the braces: `A`, `A:-b`, `A-b`, `A:?b`, `A?b`, `A:+b`, `A+b`. */
function expandBraces(inner: string, lookup: Lookup, unset: string[], depth: number): string | null {
  const [name] = NAME.exec(inner) ?? [];
  if (name === undefined) return null;
  const [, operator = '', word = ''] = /^(:?[-?+])?([^]*)$/.exec(inner.slice(name.length)) ?? [];
  const value = lookup(name);
  const isSet = value !== undefined && !(operator.startsWith(':') && value === '');
  if (operator === '' && word !== '') return null;
  if (operator.endsWith('-')) return isSet ? value : expandInto(word, lookup, unset, depth + 1);
  if (operator.endsWith('+')) return isSet ? expandInto(word, lookup, unset, depth + 1) : '';
  if (operator.endsWith('?') && !isSet) return valueOf(name, () => undefined, unset);
  return valueOf(name, lookup, unset);
}

function valueOf(name: string, lookup: Lookup, unset: string[]): string {
  const value = lookup(name);
  if (value === undefined) unset.push(name);
  return value ?? '';
}

/** Replaces the variables of all texts below a node. */
export function interpolate(run: ImportRun, node: Node, lookup: Lookup): void {
  for (const one of childNodesOf(node)) interpolate(run, one, lookup);
  if (node.is !== 'scalar' || typeof node.value !== 'string' || !node.value.includes('$')) return;
  const secrets: string[] = [];
  const expanded = expand(node.value, (name) => {
    const value = lookup(name);
    if (value !== undefined && isLikelySecret(name, value)) secrets.push(name);
    return value;
  });
  countCharacters(run, expanded?.text.length ?? 0, node);
  if (!expanded) {
    note(run, node, 'The variables of this text cannot be replaced.', 'Write the value itself.');
    Object.assign(node, { value: '', source: '' });
    return;
  }
  Object.assign(node, { value: expanded.text, source: expanded.text });
  if (secrets.length) node.hasSecret = true;
  if (expanded.unset.length) node.unset = [...new Set(expanded.unset)];
}
