// The published table of operations, as the specification has it. It is the oracle of the contract tests: they take
// nothing from the SDL that they check.
import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface PublishedOperation {
  group: string;
  id: string;
  kind: 'query' | 'mutation';
  method: string;
  path: string;
  scope: string;
  status: number;
  paginated: boolean;
}

/** All rows, built or not, in the order of the specification. */
export const published = read('operations.tsv');

/** The operations beyond the specification. */
export const extensions = read('extensions.tsv');

/** @throws Error for an operation that is in neither table */
export function publishedOperation(id: string): PublishedOperation {
  const found = published.find((row) => row.id === id) ?? extensions.find((row) => row.id === id);
  if (!found) throw new Error(`${id} is in neither table of docs/contract`);
  return found;
}

function read(name: string): readonly PublishedOperation[] {
  const text = readFileSync(path.resolve(__dirname, '../../../docs/contract', name), 'utf8');
  return text.trim().split('\n').slice(1).map(parse);
}

function parse(line: string): PublishedOperation {
  const [group, id, kind, method, place, scope, status, paginated] = line.split('\t') as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return {
    group,
    id,
    kind: kind as 'query' | 'mutation',
    method,
    path: place,
    scope,
    status: Number(status),
    paginated: paginated === 'yes',
  };
}

/** Operations that act on no project, whatever the header says. */
const NOWHERE = new Set([
  ...['listProjects', 'createProject', 'listDeletedProjects', 'restoreDeletedProject'],
  ...['listVolumeSizeLimits', 'listAiModels', 'getAiModel'],
  ...['listPausedKeys', 'resumeKey', 'importStack'],
]);

/** Which project an operation acts on: none, that of its path, or that of the header. */
export function projectSource({ group, id, path: place }: PublishedOperation): 'none' | 'path' | 'header' {
  if (group === 'Identity' || group === 'Reference' || NOWHERE.has(id)) return 'none';
  return place.startsWith('/v2/projects/{id}') ? 'path' : 'header';
}
