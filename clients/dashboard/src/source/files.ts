// Which files of a dropped folder are sent: as `svc up` sends those of one without Git, and no secrets of this
// computer.
import ignore, { type Ignore } from 'ignore';
import { DockerPatternError, parseDockerRules } from '../../../../core/protocols/docker_rules';
import {
  DOCKER_READS,
  DOCKER_RULES,
  foldersOf,
  NEVER_SENT,
  SECRET_FILES,
  verdictOf,
} from '../../../../core/protocols/source_rules';
import type { SourceFile } from './tar';

const ARCHIVE = /\.(?:zip|tgz|tar\.gz)$/i;

/** What a person has chosen: an archive as it is, or the files of a folder. */
export type Chosen =
  | { kind: 'archive'; name: string; file: File }
  | { kind: 'folder'; name: string; files: SourceFile[]; secrets: SourceFile[]; leftOut: LeftOut };

interface LeftOut {
  count: number;
  /** Files with patterns that the folder has. */
  by: string[];
}

/** A sentence for the person. */
export class ChoiceProblem extends Error {}

/** Of an input for a folder, whose files have paths, or for an archive. @throws ChoiceProblem */
export function chosenOf(list: readonly File[]): Promise<Chosen> {
  return choose(list.map((file) => ({ name: file.webkitRelativePath || file.name, file })));
}

/**
 * Of what was dropped. Its entries are gone when the event is over, so they are taken at once.
 * @throws ChoiceProblem
 */
export async function droppedOf({ items }: DataTransfer): Promise<Chosen> {
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const found: SourceFile[] = [];
  for (const entry of entries) await walk(entry, found);
  return choose(found);
}

async function walk(entry: FileSystemEntry, found: SourceFile[]): Promise<void> {
  const name = entry.fullPath.replace(/^\//, '');
  if (NEVER_SENT.test(name)) return;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ name, file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const next = (): Promise<FileSystemEntry[]> => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  // It answers in parts, and with none at the end.
  for (let part = await next(); part.length; part = await next()) for (const one of part) await walk(one, found);
}

async function choose(found: readonly SourceFile[]): Promise<Chosen> {
  const [only] = found;
  if (found.length === 1 && only && ARCHIVE.test(only.name))
    return { kind: 'archive', name: only.file.name, file: only.file };
  const folder = only?.name.split('/')[0] ?? '';
  if (!only?.name.includes('/') || found.some(({ name }) => !name.startsWith(`${folder}/`)))
    throw new ChoiceProblem('Choose one folder, or one archive: .zip, .tar.gz or .tgz.');
  const files = found.map(({ name, file }) => ({ name: name.slice(folder.length + 1), file }));
  const { by, isOut } = await rulesOf(files);
  const kept = files.filter(({ name }) => !NEVER_SENT.test(name));
  const secrets = kept.filter(({ name }) => SECRET_FILES.test(name));
  const sent = kept.filter(({ name }) => !SECRET_FILES.test(name) && !isOut(name));
  if (!sent.length) throw new ChoiceProblem(`The folder ${folder} has no files to deploy.`);
  sent.sort((a, b) => (a.name < b.name ? -1 : 1));
  const leftOut = { count: found.length - sent.length - secrets.length, by };
  return { kind: 'folder', name: folder, files: sent, secrets, leftOut };
}

interface Rules {
  by: string[];
  isOut(name: string): boolean;
}

/** .svcignore may also take back what .gitignore leaves out, and .dockerignore neither. */
async function rulesOf(files: readonly SourceFile[]): Promise<Rules> {
  const [git, own] = [await patternsOf(files, '.gitignore'), await patternsOf(files, '.svcignore')];
  const docker = await dockerRulesOf(files);
  const isOutByName = (name: string): boolean => {
    let isTakenBack = false;
    for (const one of [...foldersOf(name), name]) {
      const mine = verdictOf(one, (base) => own.get(base));
      const verdict = mine ?? (isTakenBack ? 'in' : verdictOf(one, (base) => git.get(base)));
      if (verdict === 'out') return true;
      isTakenBack ||= mine === 'in';
    }
    return false;
  };
  const by = [git.size && '.gitignore', docker?.file, own.size && '.svcignore'].filter(
    (one) => typeof one === 'string',
  );
  return { by, isOut: (name) => isOutByName(name) || docker?.leavesOut(name) === true };
}

/** Of each folder that has a file of this name; that of the top is the empty one. */
async function patternsOf(files: readonly SourceFile[], named: string): Promise<Map<string, Ignore>> {
  const found = new Map<string, Ignore>();
  for (const { name, file } of files) {
    if (name !== named && !name.endsWith(`/${named}`)) continue;
    found.set(name.slice(0, -named.length), ignore({ ignorecase: false }).add(await file.text()));
  }
  return found;
}

/** @throws ChoiceProblem */
async function dockerRulesOf(files: readonly SourceFile[]) {
  const given = DOCKER_RULES.flatMap((one) => files.find(({ name }) => name === one) ?? [])[0];
  if (!given) return undefined;
  try {
    const matches = parseDockerRules(await given.file.text(), given.name);
    return { file: given.name, leavesOut: (name: string) => matches(name) && !DOCKER_READS.test(name) };
  } catch (error) {
    throw error instanceof DockerPatternError ? new ChoiceProblem(error.message) : error;
  }
}
