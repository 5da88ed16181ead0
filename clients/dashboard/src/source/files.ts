// Which files of a dropped folder are sent: all but those that .gitignore leaves out, and no secrets of this computer.
import ignore, { type Ignore } from 'ignore';
import type { SourceFile } from './tar';

/** What the server has no use for, or makes itself. */
const NEVER = /(?:^|\/)(?:\.git|\.svc|\.hg|\.svn|node_modules|\.DS_Store)(?:\/|$)/;
/** Settings of this computer. What is an example is no secret. */
const SECRETS = /(?:^|\/)\.env(?:\.(?!example$|sample$|template$|dist$)[^/]*)?$/;
const ARCHIVE = /\.(?:zip|tgz|tar\.gz)$/i;

/** What a person has chosen: an archive as it is, or the files of a folder. */
export type Chosen =
  | { kind: 'archive'; name: string; file: File }
  | { kind: 'folder'; name: string; files: SourceFile[]; secrets: SourceFile[]; ignored: number };

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
  if (NEVER.test(name)) return;
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
  const isIgnored = await rulesOf(files);
  const kept = files.filter(({ name }) => !NEVER.test(name));
  const secrets = kept.filter(({ name }) => SECRETS.test(name));
  const sent = kept.filter(({ name }) => !SECRETS.test(name) && !isIgnored(name));
  if (!sent.length) throw new ChoiceProblem(`The folder ${folder} has no files to deploy.`);
  sent.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { kind: 'folder', name: folder, files: sent, secrets, ignored: found.length - sent.length - secrets.length };
}

/** As Git: the deepest .gitignore with a rule decides, and what is in a folder that is left out is left out. */
async function rulesOf(files: readonly SourceFile[]): Promise<(name: string) => boolean> {
  const rules = new Map<string, Ignore>();
  for (const { name, file } of files) {
    if (!/(?:^|\/)\.gitignore$/.test(name)) continue;
    rules.set(name.slice(0, -'.gitignore'.length), ignore({ ignorecase: false }).add(await file.text()));
  }
  const isOut = (name: string): boolean => {
    let verdict = false;
    for (const base of ['', ...foldersOf(name)]) {
      if (base === name) break;
      const { ignored, unignored } = rules.get(base)?.test(name.slice(base.length)) ?? {};
      if (ignored || unignored) verdict = ignored === true;
    }
    return verdict;
  };
  return (name) => [...foldersOf(name), name].some(isOut);
}

/** `a/`, `a/b/` of `a/b/c`. */
function foldersOf(name: string): string[] {
  return [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index + 1));
}
