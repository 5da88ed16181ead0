// Reads YAML that strangers write into a tree that knows its lines: no key twice, and no tags and merge keys but in the
// dialects that have them; anchors only as far as their copies are bounded. A file is never an object with keys of
// strangers.
import { createRequire } from 'node:module';
import type * as OfYaml from 'yaml';
import type { FieldError } from '../../core/errors';
import { memoize } from '../../core/memoize';

/** 70 modules, 20 ms, which a start need not wait for. */
const yaml = memoize(() => createRequire(__filename)('yaml') as typeof OfYaml);

export type Tree = { line: number; anchor?: string; tag?: string } & (
  | { is: 'map'; entries: Map<string, Tree> }
  | { is: 'list'; items: Tree[] }
  /** `source` as it is written, without quotes. */
  | { is: 'scalar'; value: string | number | boolean | null; source: string }
);

/** What files of others have beyond ours. */
export interface Dialect {
  /** `<<: *defaults` adds the keys of another mapping. */
  mergeKeys: boolean;
  /** Tags that its nodes may have. */
  tags: readonly string[];
}

const OWN: Dialect = { mergeKeys: false, tags: [] };

/** Of the lexer: some hundred milliseconds. */
const WORDS_MAX = 60_000;
/** With the copies that aliases make. */
const NODES_MAX = 20_000;
const DEPTH_MAX = 32;
const ERRORS_MAX = 20;

/** @returns the tree, or the mistakes of the text, each with its line */
export function readYaml(text: string, dialect = OWN): { tree: Tree } | { mistakes: FieldError[] } {
  const { stackTraceLimit } = Error;
  // The library makes an error for each mistake, of which there may be thousands.
  Error.stackTraceLimit = 0;
  try {
    return parseBounded(text, dialect);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

// In the steps of the library, since its whole takes minutes for some texts, and recurses into what is nested until the
// process ends ("RegExpCompiler Allocation failed" at the end of the stack, which nothing catches).
function parseBounded(text: string, dialect: Dialect): { tree: Tree } | { mistakes: FieldError[] } {
  const lines = new (yaml().LineCounter)();
  const lineAt = (offset: number): number => lines.linePos(offset).line || 1;
  const tokens = tokensOf(text, lines);
  if (!Array.isArray(tokens)) return { mistakes: [mistake(lineAt(tokens.offset), tokens.detail)] };
  if (isDeep(tokens)) return { mistakes: [mistake(1, 'is nested too deeply')] };
  const composer = new (yaml().Composer)({ ...OPTIONS, lineCounter: lines });
  const [document, second] = [...composer.compose(tokens, true, text.length)] as OfYaml.Document.Parsed[];
  if (second) return { mistakes: [mistake(lineAt(second.range[0]), 'begins a second document')] };
  const warnings = (document?.warnings ?? []).filter(({ code }) => code !== 'TAG_RESOLVE_FAILED');
  const found = [...(document?.errors ?? []), ...warnings].slice(0, ERRORS_MAX);
  if (found.length) return { mistakes: found.map((one) => mistake(lineAt(one.pos[0]), withoutSource(one.message))) };
  if (!document?.contents) return { tree: { is: 'map', line: 1, entries: new Map() } };
  const reading: Reading = { anchors: new Map(), dialect, lines, mistakes: [], nodes: 0 };
  const tree = treeOf(reading, document.contents, '', 0);
  return tree && !reading.mistakes.length ? { tree } : { mistakes: reading.mistakes };
}

const OPTIONS: OfYaml.ParseOptions & OfYaml.DocumentOptions & OfYaml.SchemaOptions = {
  ...({ version: '1.2', schema: 'core', logLevel: 'error' } as const),
  ...{ merge: false, strict: true, prettyErrors: false },
  // The library compares each key with each other one.
  uniqueKeys: false,
};

function tokensOf(text: string, lines: OfYaml.LineCounter): OfYaml.CST.Token[] | { offset: number; detail: string } {
  const parser = new (yaml().Parser)(lines.addNewLine);
  lines.addNewLine(0);
  const tokens: OfYaml.CST.Token[] = [];
  let [words, offset] = [0, 0];
  for (const word of new (yaml().Lexer)().lex(text)) {
    words += 1;
    if (words > WORDS_MAX) return { offset, detail: `has more than ${WORDS_MAX} words and signs` };
    for (const token of parser.next(word)) {
      if (token.type === 'error') return { offset: token.offset, detail: withoutSource(token.message) };
      tokens.push(token);
    }
    offset += word.length;
  }
  return [...tokens, ...parser.end()];
}

/** The library repeats what it cannot read, which may be a secret. */
const withoutSource = (message: string): string => message.replace(/(: |\n)[^]*$/, '');

function isDeep(tokens: readonly OfYaml.CST.Token[]): boolean {
  type Nested = { value?: unknown; items?: readonly { key?: unknown; value?: unknown }[] };
  const waiting = tokens.map((token): [unknown, number] => [token, 0]);
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [token, depth] = next;
    if (typeof token !== 'object' || token === null) continue;
    if (depth > DEPTH_MAX) return true;
    const { value, items = [] } = token as Nested;
    waiting.push([value, depth]);
    for (const item of items) waiting.push([item.key, depth + 1], [item.value, depth + 1]);
  }
  return false;
}

/** A mistake of the file as such. */
export function mistake(line: number, detail: string, path = ''): FieldError {
  const field = path ? `document.${path}` : 'document';
  return { field, code: 'invalid_format', detail: `line ${line}: ${detail}` };
}

interface Reading {
  /** As far as they have been read: an alias means the last one of its name. The library looks for each in all. */
  anchors: Map<string, unknown>;
  dialect: Dialect;
  lines: OfYaml.LineCounter;
  mistakes: FieldError[];
  nodes: number;
}

/** @returns null, and a mistake, for what is none of a file */
function treeOf(reading: Reading, given: unknown, path: string, depth: number): Tree | null {
  const { isAlias, isMap, isSeq, isScalar } = yaml();
  reading.nodes += 1;
  if (reading.nodes > NODES_MAX) return refuse(reading, given, path, `has more than ${NODES_MAX} values`);
  if (depth > DEPTH_MAX) return refuse(reading, given, path, 'is nested too deeply');
  const node = isAlias(given) ? reading.anchors.get(given.source) : given;
  const { anchor } = (node ?? {}) as { anchor?: string };
  if (anchor) reading.anchors.set(anchor, node);
  const tag = (node as { tag?: string } | null | undefined)?.tag;
  if (tag && !CORE_TAG.test(tag) && !reading.dialect.tags.includes(tag))
    return refuse(reading, given, path, 'has a tag, and tags are not supported');
  const line = lineOf(reading, given);
  const marks = { ...(anchor && { anchor }), ...(tag && { tag }) };
  const content = isMap(node) ? mapOf(reading, node, path, depth) : isSeq(node) && listOf(reading, node, path, depth);
  if (content !== false) return content && { ...content, ...marks };
  if (!isScalar(node)) return refuse(reading, given, path, 'is not a value');
  const { value, source } = node;
  if (value === null || ['string', 'boolean', 'number'].includes(typeof value))
    return { is: 'scalar', line, value: value as string, source: source ?? String(value), ...marks };
  return refuse(reading, given, path, 'is not a text, a number, true or false');
}

function mapOf(reading: Reading, node: OfYaml.YAMLMap, path: string, depth: number): Tree | null {
  const entries = new Map<string, Tree>();
  const merged: Tree[] = [];
  for (const { key, value } of node.items) {
    const name = yaml().isScalar(key) ? (key.source ?? String(key.value)) : null;
    if (name === null) return refuse(reading, key, path, 'has a key that is not a word');
    const place = path ? `${path}.${name}` : name;
    if (entries.has(name)) return refuse(reading, key, place, `"${name}" occurs more than once`);
    const line = lineOf(reading, key);
    const tree = value === null ? nullAt(line) : treeOf(reading, value, place, depth + 1);
    if (!tree) return null;
    if (name === '<<' && reading.dialect.mergeKeys) merged.push(...(tree.is === 'list' ? tree.items : [tree]));
    else entries.set(name, { ...tree, line });
  }
  for (const one of merged) {
    if (one.is !== 'map') return refuse(reading, node, path, 'merges what is not a mapping');
    for (const [name, tree] of one.entries) if (!entries.has(name)) entries.set(name, tree);
  }
  return { is: 'map', line: lineOf(reading, node), entries };
}

function listOf(reading: Reading, node: OfYaml.YAMLSeq, path: string, depth: number): Tree | null {
  const items: Tree[] = [];
  for (const [index, item] of node.items.entries()) {
    const tree = treeOf(reading, item, `${path}.${index}`, depth + 1);
    if (!tree) return null;
    items.push(tree);
  }
  return { is: 'list', line: lineOf(reading, node), items };
}

function refuse(reading: Reading, node: unknown, path: string, detail: string): null {
  reading.mistakes.push(mistake(lineOf(reading, node), detail, path));
  return null;
}

function lineOf({ lines }: Reading, node: unknown): number {
  const range = (node as { range?: [number, number, number] | null } | null | undefined)?.range;
  return range ? lines.linePos(range[0]).line : 1;
}

const nullAt = (line: number): Tree => ({ is: 'scalar', line, value: null, source: '' });
const CORE_TAG = /^tag:yaml\.org,2002:(map|seq|str|int|float|bool|null)$/;

/** A JSON merge patch (RFC 7396) of trees. */
export function mergeTrees(base: Tree, patch: Tree): Tree {
  if (base.is !== 'map' || patch.is !== 'map') return patch;
  const entries = new Map(base.entries);
  for (const [name, change] of patch.entries) {
    const present = entries.get(name);
    if (change.is === 'scalar' && change.value === null) entries.delete(name);
    else entries.set(name, present ? mergeTrees(present, change) : change);
  }
  return { is: 'map', line: base.line, entries };
}
