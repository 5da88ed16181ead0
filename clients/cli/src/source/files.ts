// Which files of a folder are deployed: all but those that .gitignore, .dockerignore and .svcignore leave out.
import ignore, { type Ignore } from 'ignore';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { readFileIfThere } from '../config/files';
import { isExecutableFile } from '../system';

export interface SourceFile {
  /** Path below the folder, with slashes. */
  name: string;
  file: string;
  kind: 'file' | 'link';
  isExecutable: boolean;
  bytes: number;
}

export interface FoundFiles {
  files: SourceFile[];
  /** Files with secrets, which are never deployed. */
  leftOut: string[];
}

/** What the server has no use for, or makes itself. */
const NEVER = new Set(['.git', '.svc', '.hg', '.svn', 'node_modules', '.DS_Store']);
/** Settings of this computer. What a repository shows as an example is no secret. */
const SECRETS = /^\.env(?:\.(?!example$|sample$|template$|dist$).*)?$/;
/** Docker reads them whatever .dockerignore says. */
const DOCKER_READS = /^(?:\.dockerignore|[^/]*Dockerfile[^/]*)$/;

interface Rules {
  base: string;
  matcher: Ignore;
}

/** Files by name, so that the same files give the same archive. */
export function findSourceFiles(folder: string): FoundFiles {
  const found: FoundFiles = { files: [], leftOut: [] };
  const docker = ignore().add(dockerRules(readFileIfThere(path.join(folder, '.dockerignore')) ?? ''));
  walk(folder, '', [], docker, found);
  return found;
}

function walk(folder: string, base: string, above: readonly Rules[], docker: Ignore, found: FoundFiles): void {
  const rules = [...above, ...rulesIn(folder, base)];
  const entries = fs.readdirSync(path.join(folder, base), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = base ? `${base}/${entry.name}` : entry.name;
    if (NEVER.has(entry.name) || isLeftOut(entry.isDirectory() ? `${name}/` : name, rules, docker)) continue;
    if (entry.isDirectory()) walk(folder, name, rules, docker, found);
    else if (SECRETS.test(entry.name)) found.leftOut.push(name);
    else if (entry.isFile() || entry.isSymbolicLink()) found.files.push(describeFile(folder, name, entry));
  }
}

function describeFile(folder: string, name: string, entry: fs.Dirent): SourceFile {
  const file = path.join(folder, name);
  const { mode, size } = fs.lstatSync(file);
  const isLink = entry.isSymbolicLink();
  const isExecutable = !isLink && isExecutableFile(process.platform, mode, () => readHead(file));
  return { name, file, kind: isLink ? 'link' : 'file', isExecutable, bytes: isLink ? 0 : size };
}

function readHead(file: string): string {
  const handle = fs.openSync(file, 'r');
  try {
    const head = Buffer.alloc(2);
    return head.toString('latin1', 0, fs.readSync(handle, head, 0, head.length, 0));
  } finally {
    fs.closeSync(handle);
  }
}

function rulesIn(folder: string, base: string): Rules[] {
  return ['.gitignore', '.svcignore'].flatMap((name) => {
    const text = readFileIfThere(path.join(folder, base, name));
    return text === undefined ? [] : [{ base, matcher: ignore().add(text) }];
  });
}

/** The deepest file that has a rule for it decides, as in Git. */
function isLeftOut(name: string, rules: readonly Rules[], docker: Ignore): boolean {
  let isOut = docker.ignores(name) && !DOCKER_READS.test(name);
  for (const { base, matcher } of rules) {
    const { ignored, unignored } = matcher.test(base ? name.slice(base.length + 1) : name);
    if (ignored) isOut = true;
    else if (unignored) isOut = docker.ignores(name) && !DOCKER_READS.test(name);
  }
  return isOut;
}

/** Patterns of .dockerignore begin at the folder, those of .gitignore without a slash match anywhere. */
function dockerRules(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => {
      const [, not = '', pattern = ''] = /^(!?)\s*(.*)$/.exec(line) ?? [];
      return `${not}/${pattern.replace(/^\.?\/+/, '')}`;
    });
}
