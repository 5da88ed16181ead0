// One pass over files of others: what was read, what is written, and what was not taken over.
import { validationFailed } from '../../../core/errors';
import { childNodesOf, takeAll, nodeText, type Node, type Place } from './node';
import { readNodes, type ImportFile } from './read_file';

/** Something of a file that `platform.yaml` does not have. */
export interface Finding {
  path: string;
  line: number;
  what: string;
  reason: string;
  /** What does nearly the same here. */
  nearest: string | null;
}

/** What this installation offers. */
export interface ImportCatalog {
  applicationTypes: readonly { id: string; memory_mb: number; vcpu: number; max_instances: number }[];
  engines: readonly { id: string; versions: readonly { version: string }[] }[];
  /** Whether programs may listen on a port of their own choice. */
  hasOwnPorts: boolean;
  packages: readonly { engines: readonly string[]; storage_gb: number; max_storage_gb: number; nodes: number }[];
}

export interface Application {
  name: string;
  place: Place;
  /** As the file calls it. */
  original: string;
  fields: Map<string, unknown>;
  settings: Map<string, Map<string, unknown>>;
  processes: Map<string, Map<string, unknown>>;
  variables: Map<string, unknown>;
  schedules: Map<string, unknown>;
  domains: Map<string, unknown>;
}

export interface ImportRun {
  files: ReadonlyMap<string, ImportFile>;
  profiles: ReadonlySet<string>;
  catalog: ImportCatalog;
  findings: Finding[];
  /** Files that are named and were not sent. */
  missing: Set<string>;
  /** What was read, for the sweep. */
  roots: Node[];
  nodes: number;
  characters: number;
  /** Of `.env`. */
  environment: ReadonlyMap<string, string>;
  /** Files that others extend. */
  opened: Map<string, Node | undefined>;
  databases: Map<string, Map<string, unknown>>;
  buckets: Map<string, Map<string, unknown>>;
  volumes: Map<string, Map<string, unknown>>;
  applications: Map<string, Application>;
}

const NODES_MAX = 60_000;
/** Of all values with their copies: four times what is sent. */
const CHARACTERS_MAX = 4_000_000;
const FINDINGS_MAX = 2_000;

export function startImport(
  files: readonly ImportFile[],
  catalog: ImportCatalog,
  profiles: readonly string[],
): ImportRun {
  const found = {
    findings: [],
    missing: new Set<string>(),
    roots: [],
    nodes: 0,
    characters: 0,
    opened: new Map<string, Node | undefined>(),
    environment: new Map<string, string>(),
  };
  const written = { databases: new Map(), buckets: new Map(), volumes: new Map(), applications: new Map() };
  const byPath = new Map(files.map((file) => [file.path, file]));
  return { files: byPath, profiles: new Set(profiles), catalog, ...found, ...written };
}

/** A file as nodes; undefined where it was not sent, which the answer says. @throws validation_failed */
export function openFile(run: ImportRun, path: string): Node | undefined {
  const file = run.files.get(path);
  if (!file) {
    run.missing.add(path);
    return undefined;
  }
  countCharacters(run, file.content.length, { file: path, line: 1 });
  const node = readNodes(file);
  countNodes(run, node);
  return node;
}

/** The text of a file; undefined where it was not sent, which the answer says. */
export function openText(run: ImportRun, path: string): string | undefined {
  const file = run.files.get(path);
  if (!file) run.missing.add(path);
  return file?.content;
}

/** What copies make of a small file is bounded. @throws validation_failed */
export function countNodes(run: ImportRun, node: Node): void {
  const waiting = [node];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    run.nodes += 1;
    if (next.is === 'scalar') countCharacters(run, next.source.length, next);
    waiting.push(...childNodesOf(next));
  }
  if (run.nodes <= NODES_MAX) return;
  const detail = `${node.file}, line ${node.line}: makes more than ${NODES_MAX} values of the files`;
  throw validationFailed([{ field: 'files', code: 'too_many', detail }]);
}

/** Texts that are copied are walked again and again, and no file that is so long can be planned. */
export function countCharacters(run: ImportRun, count: number, { file, line }: Pick<Place, 'file' | 'line'>): void {
  run.characters += count;
  if (run.characters <= CHARACTERS_MAX) return;
  const detail = `${file}, line ${line}: makes more than ${CHARACTERS_MAX} characters of the files`;
  throw validationFailed([{ field: 'files', code: 'too_many', detail }]);
}

/** Reports what is not taken over, with all that is below it. */
export function report(run: ImportRun, node: Node, reason: string, nearest: string | null = null): void {
  takeAll(node);
  note(run, node, reason, nearest);
}

/** Says something about a place of which the rest is taken over. */
export function note(run: ImportRun, place: Place, reason: string, nearest: string | null = null): void {
  if (run.findings.length > FINDINGS_MAX) return;
  const isLast = run.findings.length === FINDINGS_MAX;
  const said = isLast ? { reason: 'More is not taken over than is listed.', nearest: null } : { reason, nearest };
  run.findings.push({ path: place.file, line: place.line, what: place.path, ...said });
}

/** The path of a file that another file names, from the folder; null outside of it. */
export function pathFrom(file: string, named: string): string | null {
  if (named.startsWith('/') || named.startsWith('~') || /^[a-z]+:/i.test(named) || named.includes('\\')) return null;
  const segments = file.split('/').slice(0, -1);
  for (const segment of named.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') segments.push(segment);
    else if (segments.pop() === undefined) return null;
  }
  return segments.join('/') || '.';
}

/** The path that a scalar names; null and a report outside of the folder. */
export function pathIn(run: ImportRun, node: Node): string | null {
  const text = nodeText(node);
  const path = text === null ? null : pathFrom(node.file, text);
  if (path === null) report(run, node, 'The path is not within the folder.', 'Copy what is needed into the folder.');
  return path;
}
