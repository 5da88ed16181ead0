// Names of the required packages of a Python source, from all supported files; they determine the start command.
import path from 'node:path';
import type { SourceFiles } from '../source_files';

const FILES_MAX = 20;
/** Extras that include a server: `fastapi[standard]`. */
const extrasWithServer = /^fastapi\[[^\]]*\b(?:standard|all)\b/i;

/** Names in lower case with `-` as separator (PEP 503). */
export async function readPackageNames(files: SourceFiles): Promise<Set<string>> {
  const requirements = await requirementLines(files, 'requirements.txt');
  const lines =
    requirements ?? (await lockedNames(files)) ?? (await pipfileNames(files)) ?? (await projectNames(files)) ?? [];
  return new Set(lines.flatMap((line) => [...nameOf(line), ...(extrasWithServer.test(line) ? ['uvicorn'] : [])]));
}

/** Lines of a requirements file and its includes (`-r other.txt`); null for a missing file. */
export async function requirementLines(files: SourceFiles, file: string): Promise<string[] | null> {
  const text = await files.read(file);
  if (text === null) return null;
  const found: string[] = [];
  const queue = [{ file, text }];
  const seen = new Set([file]);
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const line of logicalLines(next.text)) {
      const included = /^(?:-r|--requirement)(?:\s*=?\s*)(\S+)/.exec(line)?.[1];
      if (included === undefined) {
        if (!line.startsWith('-') || /^(?:-e|--editable)\b/.test(line)) found.push(line);
        continue;
      }
      const other = path.posix.join(path.posix.dirname(next.file), included);
      if (seen.has(other) || seen.size >= FILES_MAX) continue;
      seen.add(other);
      queue.push({ file: other, text: (await files.read(other)) ?? '' });
    }
  }
  return found;
}

function logicalLines(text: string): string[] {
  return text
    .replace(/\\\r?\n/g, ' ')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*/, '').trim())
    .filter(Boolean);
}

async function lockedNames(files: SourceFiles): Promise<string[] | null> {
  for (const lock of ['uv.lock', 'poetry.lock']) {
    const text = await files.read(lock);
    if (text !== null) return [...text.matchAll(/^name = "([^"]+)"/gm)].map(([, name = '']) => name);
  }
  const text = await files.read('Pipfile.lock');
  return text === null ? null : lockedByPipenv(text);
}

/** An unreadable file is ignored here; pip reports the error. */
function lockedByPipenv(text: string): string[] {
  try {
    const found = JSON.parse(text) as { default?: Record<string, unknown> };
    return Object.keys(found.default ?? {});
  } catch {
    return [];
  }
}

async function pipfileNames(files: SourceFiles): Promise<string[] | null> {
  const text = await files.read('Pipfile');
  return text === null ? null : keysOf(tomlTableOf(text, 'packages'));
}

async function projectNames(files: SourceFiles): Promise<string[] | null> {
  const text = await files.read('pyproject.toml');
  if (text === null) return null;
  const list = /^dependencies\s*=\s*\[((?:[^\]"']|"[^"]*"|'[^']*')*)\]/m.exec(tomlTableOf(text, 'project'))?.[1] ?? '';
  const stated = [...list.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, one, other]) => one ?? other ?? '');
  return [...stated, ...keysOf(tomlTableOf(text, 'tool.poetry.dependencies'))];
}

/** The lines of one TOML table, up to the next table. */
export function tomlTableOf(text: string, name: string): string {
  const lines = text.split(/\r?\n/);
  const first = lines.findIndex((line) => line.trim() === `[${name}]`);
  if (first < 0) return '';
  const rest = lines.slice(first + 1);
  const end = rest.findIndex((line) => /^\[[\w."-]+\]\s*(#.*)?$/.test(line.trim()));
  return (end < 0 ? rest : rest.slice(0, end)).join('\n');
}

function keysOf(table: string): string[] {
  return [...table.matchAll(/^\s*["']?([\w.-]+)["']?\s*=(.*)$/gm)].map(([, name = '', value = '']) => {
    const extras = /extras\s*=\s*\[([^\]]*)\]/.exec(value)?.[1];
    return extras === undefined ? name : `${name}[${extras.replace(/["'\s]/g, '')}]`;
  });
}

function nameOf(line: string): string[] {
  const name = /^([A-Za-z0-9][\w.-]*)/.exec(line)?.[1] ?? /#egg=([\w.-]+)/.exec(line)?.[1];
  return name === undefined ? [] : [name.toLowerCase().replace(/[-_.]+/g, '-')];
}
