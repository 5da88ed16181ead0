// Names of the required packages of a Python source, from all supported files; they determine the start command.
import type { SourceFiles } from '../source_files';
import { parseToml, table } from '../toml_file';
import { packageNameOf, type PythonProject } from './python_project';
import { requirementLines } from './python_requirements';
import type { PythonStatement } from './python_statement';

/** Of a lock file: those of large projects have megabytes of hashes. */
export const LOCK_BYTES_MAX = 32 << 20;
/** Extras that include a server: `fastapi[standard]`. */
const extrasWithServer = /^fastapi\[[^\]]*\b(?:standard|all)\b/i;

export interface PackageNames {
  /** What is installed by default. */
  main: Set<string>;
  /** With all extras and groups. */
  all: Set<string>;
}

/** Names in lower case with `-` as separator (PEP 503). */
export async function readPackageNames(
  files: SourceFiles,
  statement: PythonStatement,
  project: PythonProject | null,
): Promise<PackageNames> {
  const stated = (project?.requirements ?? []).flatMap(namesOf);
  const lines = (await statedLines(files, statement)) ?? [];
  const others = optionalNames(project).filter((name) => !stated.includes(name));
  const main = new Set([
    ...lines.flatMap(namesOf).filter((name) => !others.includes(name)),
    ...usedBy(statement, stated),
  ]);
  return { main, all: new Set([...main, ...others]) };
}

/** Where packages are stated elsewhere, pyproject.toml has settings of tools, or what is not installed. */
function usedBy({ kind }: PythonStatement, stated: string[]): string[] {
  return ['requirements', 'pipfile', 'setup', 'none'].includes(kind) ? [] : stated;
}

function optionalNames(project: PythonProject | null): string[] {
  return [...Object.values(project?.extras ?? {}), ...Object.values(project?.groups ?? {})].flat();
}

function namesOf(line: string): string[] {
  return [...packageNameOf(line), ...(extrasWithServer.test(line) ? ['uvicorn'] : [])];
}

async function statedLines(files: SourceFiles, statement: PythonStatement): Promise<string[] | null> {
  switch (statement.kind) {
    case 'requirements':
      return (await requirementLines(files, statement.file))?.lines ?? null;
    case 'uv':
      return statement.lock === null ? null : lockedNames(files, statement.lock);
    case 'poetry':
    case 'pdm':
    case 'pylock':
      return lockedNames(files, statement.file);
    case 'pipfile':
      return ofPipfile(files);
    case 'setup':
      return ofSetup((await files.read(statement.file)) ?? '');
    default:
      return null;
  }
}

/** All locks of these programs have a line `name = "…"` for each package. */
async function lockedNames(files: SourceFiles, lock: string): Promise<string[]> {
  const text = (await files.read(lock, LOCK_BYTES_MAX)) ?? '';
  return [...text.matchAll(/^name = "([^"]+)"/gm)].map(([, name = '']) => name);
}

async function ofPipfile(files: SourceFiles): Promise<string[]> {
  const text = await files.read('Pipfile.lock', LOCK_BYTES_MAX);
  if (text === null) return pipfilePackages((await files.read('Pipfile')) ?? '');
  try {
    const found = JSON.parse(text) as { default?: Record<string, unknown> };
    return Object.keys(found.default ?? {});
  } catch {
    // The installer reports it.
    return [];
  }
}

function pipfilePackages(text: string): string[] {
  return Object.entries(table(parseToml(text, 'Pipfile').packages)).map(([name, value]) => {
    const { extras } = table(value);
    return Array.isArray(extras) ? `${name}[${extras.join(',')}]` : name;
  });
}

/** Of setup.py only what it states literally: it is a program. */
function ofSetup(text: string): string[] {
  const literal = literalList(text);
  if (literal !== null) return literal;
  const block = /^install_requires[ \t]*=[ \t]*(.*(?:\n[ \t]+.*|\n[ \t]*(?=\n))*)/m.exec(text)?.[1] ?? '';
  return block.split('\n').map((line) => line.trim());
}

/**
 * The strings of the list; null where it has no end. Each character is part of one token alone, and of one list: the
 * text is the tenant's.
 */
function literalList(text: string): string[] | null {
  const start = /install_requires\s*=\s*\[/.exec(text);
  if (start === null) return null;
  const found: string[] = [];
  const token = /"([^"\n]*)"|'([^'\n]*)'|#[^\n]*|[^\]"'#]+|(\])/y;
  token.lastIndex = start.index + start[0].length;
  for (let next = token.exec(text); next !== null; next = token.exec(text)) {
    const [, one, two, end] = next;
    if (end !== undefined) return found;
    const name = one ?? two;
    if (name !== undefined) found.push(name);
  }
  return null;
}
