// Requirement files: https://pip.pypa.io/en/stable/reference/requirements-file-format/
import path from 'node:path';
import { BuildError } from '../../builder';
import type { SourceFiles } from '../source_files';

const FILES_MAX = 20;

interface Requirements {
  /** Requirements, without options. */
  lines: string[];
  /** The file and its includes. */
  files: string[];
  /** The same packages at each installation. */
  isPinned: boolean;
}

/** A requirements file and its includes (`-r other.txt`); null for a missing file. */
export async function requirementLines(files: SourceFiles, file: string): Promise<Requirements | null> {
  const text = await files.read(file);
  if (text === null) return null;
  const lines: string[] = [];
  const queue = [{ file, text }];
  const seen = new Set([file]);
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const line of logicalLines(next.text)) {
      const included = /^(?:-r|--requirement|-c|--constraint)\s*(?:=\s*)?(\S+)/.exec(line)?.[1];
      if (included === undefined) {
        if (!line.startsWith('-') || EDITABLE.test(line)) lines.push(line);
        continue;
      }
      const other = path.posix.join(path.posix.dirname(next.file), included);
      if (seen.has(other) || seen.size >= FILES_MAX) continue;
      seen.add(other);
      if (/^(?:-r|--requirement)/.test(line)) queue.push({ file: other, text: (await files.read(other)) ?? '' });
    }
  }
  return { lines, files: [...seen], isPinned: lines.every((line) => PINNED.test(line)) };
}

const EDITABLE = /^(?:-e|--editable)\b/;
const PINNED = /^[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?===?\s*[^\s*;,]+\s*(?:;|--hash|$)/;

function logicalLines(text: string): string[] {
  return text
    .replace(/\\\r?\n/g, ' ')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*/, '').trim())
    .filter(Boolean);
}

const directories = ['requirements', 'requirement', 'reqs'];
const names = [
  ...['production', 'prod', 'deploy', 'live', 'requirements', 'main', 'base', 'common', 'core', 'default'],
  ...['app', 'web', 'server'],
];
/** Of what people do beside running the application. */
const notForProduction = new RegExp(
  '(?:^|[-_.])(?:dev|devel|development|local|tests?|testing|docs?|lint|linting|ci|build|optional|extras?|min|minimal)' +
    '(?:[-_.]|$)',
  'i',
);

/** The file for production among those that have no usual name; null for none. @throws BuildError for several */
export async function findRequirements(files: SourceFiles): Promise<string | null> {
  const top = await files.names('.');
  const beside = names.slice(0, 4).flatMap((name) => ['-', '_', '.'].map((dash) => `requirements${dash}${name}.txt`));
  const usual = [...beside, 'requirements.lock', 'requirements.in', 'requirements-base.txt', 'requirement.txt'];
  const found = usual.find((name) => top.includes(name));
  if (found !== undefined) return found;
  for (const directory of directories) {
    const own = (await files.names(directory)).filter((name) => /^\w[\w.-]*\.(?:txt|in)$/.test(name));
    const stems = new Set(own.map((name) => name.replace(/\.(?:txt|in)$/, '')));
    const stem = names.find((name) => stems.has(name)) ?? onlyOne([...stems], directory);
    if (stem !== null) return path.posix.join(directory, own.includes(`${stem}.txt`) ? `${stem}.txt` : `${stem}.in`);
  }
  return null;
}

function onlyOne(stems: string[], directory: string): string | null {
  const left = stems.filter((stem) => !notForProduction.test(stem));
  if (left.length === 1) return left[0]!;
  const [first, second] = (left.length > 0 ? left : stems).map((stem) => `${directory}/${stem}.txt`);
  if (first === undefined) return null;
  const several = second === undefined ? first : `${first} and ${second}`;
  throw new BuildError(
    `The source has ${several.replace(/[^ -~]/g, '?')}, and nothing says what runs in production. ` +
      `Add a requirements.txt with the line \`-r ${first.replace(/[^ -~]/g, '?')}\`.`,
  );
}
