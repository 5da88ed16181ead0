// Reads YAML, JSON and TOML of others as nodes.
import { validationFailed } from '../../../core/errors';
import { toml } from '../../../core/formats/toml';
import { readYaml, type Dialect, type Tree } from '../yaml_tree';
import type { Node } from './node';

/** A file as it was sent. */
export interface ImportFile {
  path: string;
  content: string;
  /** Place in the request. */
  index: number;
}

/** `!reset` and `!override` are of Compose. */
const FOREIGN: Dialect = { mergeKeys: true, tags: ['!reset', '!override'] };
const TOML_DEPTH_MAX = 32;
const TOML_VALUES_MAX = 20_000;

/** @throws validation_failed with the file and the line */
export function refuseFile({ index, path }: ImportFile, line: number, detail: string): never {
  const said = detail.replace(/^line \d+: /, '');
  throw validationFailed([
    { field: `files.${index}.content`, code: 'invalid_format', detail: `${path}, line ${line}: ${said}` },
  ]);
}

/** @throws validation_failed with the file and the line */
export function readNodes(file: ImportFile): Node {
  if (file.path.endsWith('.toml')) return readToml(file);
  // Tabs are allowed between the values of JSON, and never in a text of it. JSON is YAML beyond that.
  const text = file.path.endsWith('.json') ? file.content.replaceAll('\t', ' ') : file.content;
  const read = readYaml(text, FOREIGN);
  if ('tree' in read) {
    if (read.tree.is !== 'map') refuseFile(file, read.tree.line, 'must be a mapping');
    return nodeOf(file.path, read.tree, '');
  }
  const mistakes = read.mistakes.map(({ detail }) => ({
    ...{ field: `files.${file.index}.content`, code: 'invalid_format' as const },
    detail: `${file.path}, ${detail}`,
  }));
  throw validationFailed(mistakes);
}

function nodeOf(file: string, tree: Tree, path: string): Node {
  const { line, anchor, tag } = tree;
  const place = { file, line, path, isTaken: false, ...(anchor && { isAnchor: true as const }), ...(tag && { tag }) };
  const below = (name: string | number): string => (path ? `${path}.${name}` : `${name}`);
  if (tree.is === 'list')
    return { ...place, is: 'list', items: tree.items.map((one, index) => nodeOf(file, one, below(index))) };
  if (tree.is === 'map') {
    const entries = [...tree.entries].map(([name, one]): [string, Node] => [name, nodeOf(file, one, below(name))]);
    return { ...place, is: 'map', entries: new Map(entries) };
  }
  return { ...place, is: 'scalar', value: tree.value, source: tree.source };
}

function readToml(file: ImportFile): Node {
  const lines = tomlLines(file);
  let table: Record<string, unknown>;
  try {
    table = toml().parse(file.content, { maxDepth: TOML_DEPTH_MAX });
  } catch (error) {
    const { line = 1, message } = error as { line?: number; message: string };
    return refuseFile(file, line, message.split('\n')[0]?.replace('Invalid TOML document: ', '') ?? '');
  }
  const reading = { file, lines, values: 0 };
  return tomlNode(reading, table, '', 1, 0);
}

interface TomlReading {
  file: ImportFile;
  lines: ReadonlyMap<string, number>;
  values: number;
}

function tomlNode(reading: TomlReading, value: unknown, path: string, above: number, depth: number): Node {
  const line = reading.lines.get(path) ?? above;
  reading.values += 1;
  if (depth > TOML_DEPTH_MAX) refuseFile(reading.file, line, 'is nested too deeply');
  if (reading.values > TOML_VALUES_MAX) refuseFile(reading.file, line, `has more than ${TOML_VALUES_MAX} values`);
  const place = { file: reading.file.path, line, path, isTaken: false };
  const below = (name: string, one: unknown): Node =>
    tomlNode(reading, one, path ? `${path}.${name}` : name, line, depth + 1);
  if (Array.isArray(value))
    return { ...place, is: 'list', items: value.map((one, index) => below(String(index), one)) };
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    const entries = Object.entries(value).map(([name, one]): [string, Node] => [name, below(name, one)]);
    return { ...place, is: 'map', entries: new Map(entries) };
  }
  const text = value instanceof Date ? value.toISOString() : String(value);
  const isPlain = ['string', 'number', 'boolean'].includes(typeof value);
  return { ...place, is: 'scalar', value: isPlain ? (value as string) : text, source: text };
}

const HEADER = /^\s*(\[\[?)([^\]]+)\]/;
const KEY = /^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=\s*(.*)$/;

/** Lines of tables and keys, which the parser does not tell. */
function tomlLines(file: ImportFile): Map<string, number> {
  const lines = new Map<string, number>();
  const counts = new Map<string, number>();
  let [prefix, fence] = ['', ''];
  for (const [index, line] of file.content.split('\n').entries()) {
    if (fence) {
      if (line.includes(fence)) fence = '';
      continue;
    }
    const [, kind, name] = HEADER.exec(line) ?? [];
    if (kind && name) {
      prefix = partsOf(file, index + 1, name).join('.');
      if (kind === '[[') {
        const count = counts.get(prefix) ?? 0;
        counts.set(prefix, count + 1);
        if (!lines.has(prefix)) lines.set(prefix, index + 1);
        prefix = `${prefix}.${count}`;
      } else prefix = withIndexes(prefix, counts);
      if (!lines.has(prefix)) lines.set(prefix, index + 1);
      continue;
    }
    const [, key, value = ''] = KEY.exec(line) ?? [];
    if (!key) continue;
    const path = [prefix, ...partsOf(file, index + 1, key)].filter(Boolean).join('.');
    if (!lines.has(path)) lines.set(path, index + 1);
    const opening = ['"""', "'''"].find((quotes) => value.startsWith(quotes));
    if (opening && !value.slice(3).includes(opening)) fence = opening;
  }
  return lines;
}

function partsOf(file: ImportFile, line: number, name: string): string[] {
  const parts = name.match(/"[^"]*"|'[^']*'|[^.\s]+/g) ?? [];
  if (parts.length > TOML_DEPTH_MAX) refuseFile(file, line, 'is nested too deeply');
  return parts.map((one) => one.replace(/^["']|["']$/g, ''));
}

/** A table below the last one of an array: `[services.concurrency]` after `[[services]]`. */
function withIndexes(path: string, counts: ReadonlyMap<string, number>): string {
  let found = '';
  let plain = '';
  for (const part of path.split('.')) {
    plain = plain ? `${plain}.${part}` : part;
    found = found ? `${found}.${part}` : part;
    const count = counts.get(plain);
    if (count !== undefined && plain !== path) found = `${found}.${count - 1}`;
  }
  return found;
}
