// Which application a folder belongs to: `.svc/link.json` in it or above it, up to the top of the repository.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { EXIT, Failure } from '../failure';
import { readFileIfThere } from './files';

export interface Link {
  url: string;
  project_id: string;
  application_id: string;
}

export interface FoundLink extends Link {
  /** The folder that is linked. */
  folder: string;
}

const NAME = path.join('.svc', 'link.json');

/** @throws Failure for a file that is no link */
export function findLink(from = process.cwd()): FoundLink | undefined {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const text = readFileIfThere(path.join(folder, NAME));
    if (text !== undefined) return parseLink(text, folder);
    if (fs.existsSync(path.join(folder, '.git')) || path.dirname(folder) === folder) return undefined;
  }
}

function parseLink(text: string, folder: string): FoundLink {
  try {
    const link = JSON.parse(text) as Link;
    if (!URL.canParse(link.url) || !/^prj_\w+$/.test(link.project_id) || !/^app_\w+$/.test(link.application_id))
      throw new Error('it lacks a field');
    return { ...link, folder };
  } catch {
    throw new Failure(`${path.join(folder, NAME)} is no link to an application.`, EXIT.usage, ['Run `svc link`.']);
  }
}

/** Links a folder, and keeps the link out of the repository. It contains no secret. */
export function writeLink(folder: string, link: Link): void {
  fs.mkdirSync(path.join(folder, '.svc'), { recursive: true });
  fs.writeFileSync(path.join(folder, NAME), `${JSON.stringify(link, null, 2)}\n`);
  const file = path.join(folder, '.gitignore');
  const text = readFileIfThere(file) ?? '';
  if (text.split(/\r?\n/).some((line) => /^\/?\.svc\/?$/.test(line.trim()))) return;
  const end = text.includes('\r\n') ? '\r\n' : '\n';
  fs.writeFileSync(file, `${text}${text && !text.endsWith('\n') ? end : ''}.svc/${end}`);
}

export function removeLink(folder: string): void {
  fs.rmSync(path.join(folder, NAME), { force: true });
}
