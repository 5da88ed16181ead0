// A Compose file with what it includes and extends, as one tree.
import { childNodesOf, nodeEntries, itemsOf, peek, takeAll, nodeText, textsOf, type Node } from '../node';
import { refuseFile, type ImportFile } from '../read_file';
import { countNodes, note, openFile, pathIn, report, type ImportRun } from '../run';

const DEPTH_MAX = 20;

type MapNode = Extract<Node, { is: 'map' }>;

/** Reads a file with its includes, and replaces each service by what `extends` makes of it. */
export function loadCompose(run: ImportRun, path: string): Node | undefined {
  const root = readWithIncludes(run, path, []);
  const services = peek(root, 'services');
  if (root?.is !== 'map' || services?.is !== 'map') return root;
  for (const name of services.entries.keys()) {
    const extended = extendService(run, root, name, []);
    if (extended) services.entries.set(name, extended);
  }
  return root;
}

function readWithIncludes(run: ImportRun, path: string, above: readonly string[]): Node | undefined {
  const root = openFile(run, path);
  if (root?.is !== 'map') return root;
  const include = root.entries.get('include');
  root.entries.delete('include');
  if (!include) return root;
  for (const item of include.is === 'list' ? itemsOf(include) : [include]) {
    for (const [name, one] of nodeEntries(item))
      if (name !== 'path') report(run, one, 'Included files are read as they are.', 'Put the values into the file.');
    const paths = item.is === 'map' ? item.entries.get('path') : item;
    for (const named of paths?.is === 'list' ? itemsOf(paths) : paths ? [paths] : [])
      includeFile(run, root, named, [...above, path]);
  }
  return root;
}

function includeFile(run: ImportRun, root: MapNode, named: Node, above: readonly string[]): void {
  const path = pathIn(run, named);
  if (path === null) return;
  if (above.includes(path) || above.length > DEPTH_MAX)
    refuseFile(run.files.get(named.file) as ImportFile, named.line, `includes ${path}, which includes this file again`);
  const included = readWithIncludes(run, path, above);
  if (!included) return note(run, named, `${path} is not among the files.`, 'Run svc import in its folder.');
  if (included.is !== 'map') return;
  for (const [section, content] of included.entries) {
    const own = root.entries.get(section);
    // What the file itself says wins.
    root.entries.set(section, own ? mergeNodes(content, own, section) : content);
  }
}

function extendService(run: ImportRun, root: Node, name: string, above: readonly string[]): Node | undefined {
  const service = peek(peek(root, 'services'), name);
  const given = peek(service, 'extends');
  if (service?.is !== 'map' || !given) return service;
  const place = `${service.file} ${name}`;
  if (above.includes(place) || above.length > DEPTH_MAX)
    refuseFile(run.files.get(given.file) as ImportFile, given.line, `${name} extends itself`);
  const base = baseOf(run, root, given, [...above, place]);
  takeAll(given);
  const own: MapNode = { ...service, entries: new Map([...service.entries].filter(([key]) => key !== 'extends')) };
  if (!base) {
    note(run, given, 'What this service extends is not among the files.', 'Write its values into the service.');
    return own;
  }
  const merged = mergeNodes(copyOf(base), own, '');
  countNodes(run, merged);
  return merged;
}

function baseOf(run: ImportRun, root: Node, given: Node, above: readonly string[]): Node | undefined {
  const name = nodeText(given.is === 'map' ? given.entries.get('service') : given);
  const file = given.is === 'map' ? given.entries.get('file') : undefined;
  if (name === null) return undefined;
  if (!file) return extendService(run, root, name, above);
  const path = pathIn(run, file);
  if (path !== null && !run.opened.has(path)) run.opened.set(path, openFile(run, path));
  const other = path === null ? undefined : run.opened.get(path);
  return other && extendService(run, other, name, above);
}

function copyOf(node: Node): Node {
  if (node.is === 'map')
    return { ...node, isTaken: false, entries: new Map([...node.entries].map(([name, one]) => [name, copyOf(one)])) };
  if (node.is === 'list') return { ...node, isTaken: false, items: node.items.map(copyOf) };
  return { ...node, isTaken: false };
}

const REPLACED = ['command', 'entrypoint', 'test'];
const PAIRS = ['environment', 'args', 'labels'];

/** As Compose merges: mappings by their keys, lists behind each other, commands and single values replaced. */
function mergeNodes(base: Node, over: Node, name: string): Node {
  if (over.tag === '!reset') return { ...over, is: 'scalar', value: null, source: '', isTaken: true } as Node;
  if (over.tag === '!override' || REPLACED.includes(name)) return over;
  const [under, upper] = PAIRS.includes(name) ? [pairsOf(base), pairsOf(over)] : [base, over];
  if (under.is === 'map' && upper.is === 'map') {
    const entries = new Map(under.entries);
    for (const [key, one] of upper.entries) {
      const present = entries.get(key);
      entries.set(key, present ? mergeNodes(present, one, key) : one);
    }
    return { ...upper, entries };
  }
  return under.is === 'list' && upper.is === 'list' ? { ...upper, items: [...under.items, ...upper.items] } : over;
}

/** `- A=b` as `A: b`. `- A` has no value. */
export function pairsOf(node: Node): MapNode {
  if (node.is === 'map') return node;
  const entries = new Map<string, Node>();
  for (const item of childNodesOf(node)) {
    const text = textsOf(item)?.[0] ?? '';
    item.isTaken = false;
    const [, key = text, value] = /^([^=]*)=([^]*)$/.exec(text) ?? [];
    const path = `${node.path}.${key}`;
    entries.set(key, { ...item, is: 'scalar', path, value: value ?? null, source: value ?? '' } as Node);
  }
  const { file, line, path, isTaken } = node;
  return { file, line, path, isTaken, is: 'map', entries };
}
