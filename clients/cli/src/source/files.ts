// Which files of a folder are deployed. In a repository: what Git has, and what it would take; elsewhere all but those
// that .gitignore leaves out. Less what .dockerignore and .svcignore leave out.
import ignore, { type Ignore } from 'ignore';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { DockerPatternError, parseDockerRules } from '../../../../core/protocols/docker_rules';
import {
  DOCKER_READS,
  DOCKER_RULES,
  foldersOf,
  NEVER_SENT,
  SECRET_FILES,
  verdictOf,
} from '../../../../core/protocols/source_rules';
import { readFileIfThere } from '../config/files';
import { usageFailure } from '../failure';
import { isExecutableFile } from '../system';
import { findGitFiles, type GitFiles } from './git_files';

export interface SourceFile {
  /** Path below the folder, with slashes. */
  name: string;
  file: string;
  kind: 'file' | 'link';
  isExecutable: boolean;
  bytes: number;
}

interface FoundFiles {
  files: SourceFile[];
  /** What is left out, or sent, and surprises: sentences. */
  notices: string[];
}

const NEVER_EVEN_TRACKED = /(?:^|\/)(?:\.git|\.svc)(?:\/|$)/;

interface Listed {
  names: { name: string; isTracked: boolean }[];
  notices: string[];
}

/** Files by name, so that the same files give the same archive. @throws Failure */
export function findSourceFiles(given: string): FoundFiles {
  const folder = fs.realpathSync(given);
  const { names, notices } = listFiles(folder);
  const docker = dockerRulesIn(folder);
  const files: SourceFile[] = [];
  const secrets: string[] = [];
  const withoutDocker: string[] = [];
  const areParents = parentsIn(folder);
  for (const { name, isTracked } of names.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if ((isTracked ? NEVER_EVEN_TRACKED : NEVER_SENT).test(name)) continue;
    const file = areParents(name) ? describeFile(folder, name) : undefined;
    if (!file) continue;
    if (docker?.leavesOut(name)) withoutDocker.push(...(isTracked ? [name] : []));
    else if (!isTracked && SECRET_FILES.test(name)) secrets.push(name);
    else files.push(file);
  }
  if (secrets.length) notices.push(`Not sent: ${secrets.join(', ')}. Their variables are set with \`svc env push\`.`);
  if (withoutDocker.length)
    notices.push(`Not sent, since ${docker?.file} leaves them out: ${countNames(withoutDocker)}, which Git tracks.`);
  return { files, notices };
}

function countNames([first = '', ...others]: readonly string[]): string {
  return others.length ? `${first} and ${others.length} more files` : first;
}

function dockerRulesIn(folder: string): { file: string; leavesOut(name: string): boolean } | undefined {
  for (const file of DOCKER_RULES) {
    const text = readFileIfThere(path.join(folder, file));
    if (text === undefined) continue;
    const matches = dockerRulesOf(text, file);
    return { file, leavesOut: (name) => matches(name) && !DOCKER_READS.test(name) };
  }
  return undefined;
}

/** @throws Failure */
function dockerRulesOf(text: string, file: string): (name: string) => boolean {
  try {
    return parseDockerRules(text, file);
  } catch (error) {
    throw error instanceof DockerPatternError ? usageFailure(error.message) : error;
  }
}

function listFiles(folder: string): Listed {
  const git = findGitFiles(folder);
  if (git === undefined) return { names: walk(folder), notices: [] };
  if ('withoutGit' in git) return { names: walk(folder, git.withoutGit), notices: [WITHOUT_GIT] };
  if (!('ignoredBy' in git)) return filterGitFiles(folder, git);
  const notice =
    `Git ignores the folder ${path.basename(folder)} (${git.ignoredBy}). It is sent since you deploy it, without ` +
    'what its own .gitignore leaves out.';
  return { names: walk(folder), notices: [notice] };
}

const WITHOUT_GIT =
  'The program git is missing here, so .gitignore alone says which files are sent: those that it names stay here, ' +
  'also where Git tracks them. Install git to send what Git has.';

/** By .svcignore, which may also take back what Git ignores. */
function filterGitFiles(folder: string, { files, missing, prefix, listIgnored }: GitFiles): Listed {
  const rules = rulesOf(path.join(folder, '../'.repeat(prefix.split('/').length - 1)), '.svcignore');
  const names = files.filter(({ name }) => rules.ofPath(prefix + name) !== 'out');
  if (rules.hasException())
    for (const name of listIgnored()) if (rules.ofPath(prefix + name) === 'in') names.push({ name, isTracked: false });
  const notices = missing.map(
    (name) => `The submodule ${name} is not checked out, so its files are not sent: git submodule update --init`,
  );
  return { names, notices };
}

/** @param top the folder above, or the same, whose files of patterns are read too */
function walk(folder: string, top = folder): Listed['names'] {
  const prefix = top === folder ? '' : `${path.relative(top, folder).replaceAll(path.sep, '/')}/`;
  const [git, own] = [rulesOf(top, '.gitignore', excludesOf(top)), rulesOf(top, '.svcignore')];
  const names: Listed['names'] = [];
  const enter = (base: string, isTakenBack: boolean): void => {
    for (const entry of fs.readdirSync(path.join(folder, base), { withFileTypes: true })) {
      const name = base + entry.name;
      const shown = entry.isDirectory() ? `${name}/` : name;
      const [mine, theirs] = [own.of(prefix + shown), git.of(prefix + shown)];
      const verdict = mine ?? (isTakenBack ? 'in' : theirs);
      if (NEVER_SENT.test(name) || verdict === 'out') continue;
      if (!entry.isDirectory()) names.push({ name, isTracked: false });
      else if (isNamed(path.join(folder, name), name)) enter(shown, isTakenBack || mine === 'in');
    }
  };
  enter('', false);
  return names;
}

/** Patterns of a repository that no commit has. A worktree has them elsewhere. */
const excludesOf = (top: string): string | undefined =>
  fs.statSync(path.join(top, '.git'), { throwIfNoEntry: false })?.isDirectory()
    ? readFileIfThere(path.join(top, '.git/info/exclude'))
    : undefined;

type Verdict = ReturnType<typeof verdictOf>;

interface Rules {
  /** The deepest file that has a rule for it decides, as in Git. Folders have a slash at their end. */
  of(name: string): Verdict;
  /** Of a file whose folders were not asked for: what is in one that is left out is left out. */
  ofPath(name: string): Verdict;
  /** Whether a rule that was read takes something back. */
  hasException(): boolean;
}

/** Files of patterns of this name, in the folders of all paths that are asked for. */
function rulesOf(top: string, file: string, before = ''): Rules {
  const known = new Map<string, Ignore | undefined>();
  let hasException = false;
  const read = (base: string): Ignore | undefined => {
    const own = readFileIfThere(path.join(top, base, file));
    if (own === undefined && (base || !before)) return undefined;
    const text = `${base ? '' : before}\n${own ?? ''}`;
    hasException ||= /^!/m.test(text);
    return ignore({ ignorecase: ['darwin', 'win32'].includes(process.platform) }).add(text);
  };
  const patternsIn = (base: string): Ignore | undefined => {
    if (!known.has(base)) known.set(base, read(base));
    return known.get(base);
  };
  const of = (name: string): Verdict => verdictOf(name, patternsIn);
  const ofPath = (name: string): Verdict => {
    let verdict: Verdict;
    for (const one of [...foldersOf(name), name]) {
      verdict = of(one) ?? verdict;
      if (verdict === 'out') break;
    }
    return verdict;
  };
  return { of, ofPath, hasException: () => hasException };
}

/** Whether all folders of a path are folders: what Git has below one that became a link is not there any more. */
function parentsIn(folder: string): (name: string) => boolean {
  const known = new Map<string, boolean>([['.', true]]);
  const isFolder = (name: string): boolean => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const stats =
      isFolder(path.posix.dirname(name)) && fs.lstatSync(path.join(folder, name), { throwIfNoEntry: false });
    const is = stats ? stats.isDirectory() : !isNamed(path.join(folder, name), name);
    known.set(name, is);
    return is;
  };
  return (name) => isFolder(path.posix.dirname(name));
}

/** undefined for what is no file, or is not there. */
function describeFile(folder: string, name: string): SourceFile | undefined {
  const file = path.join(folder, name);
  const stats = fs.lstatSync(file, { throwIfNoEntry: false });
  if (!stats) return void isNamed(file, name);
  const isLink = stats.isSymbolicLink();
  if (!isLink && !stats.isFile()) return undefined;
  const isExecutable = !isLink && isExecutableFile(process.platform, stats.mode, () => readHead(file));
  return { name, file, kind: isLink ? 'link' : 'file', isExecutable, bytes: isLink ? 0 : stats.size };
}

/** @throws Failure for a name that is no UTF-8: no archive could have it, and the server would not find it again */
function isNamed(file: string, name: string): boolean {
  if (!name.includes('\uFFFD') || fs.existsSync(file)) return true;
  throw usageFailure(
    `The name of ${name} is not encoded in UTF-8, so it cannot be sent.`,
    'Rename it, or leave it out with a line in .svcignore, such as *.txt.',
  );
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
