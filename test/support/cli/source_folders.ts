// Folders and repositories whose files `svc up` would send.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { bundlePart } from './part';

interface Found {
  files: { name: string; kind: string }[];
  notices: string[];
}

export interface SourceFolders {
  /** Also the home of Git. */
  directory: string;
  findSourceFiles(folder: string): Found;
  namesIn(folder: string): string[];
  /** A folder of these files, outside of any repository. */
  folderOf(files: Record<string, string>): string;
  /** The same as a repository, in which some are committed. */
  repositoryOf(files: Record<string, string>, ...tracked: string[]): string;
  remove(): void;
}

export function git(folder: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

export function write(folder: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
}

/** Changes HOME of this process: settings of Git are those of the tests. */
export function openSourceFolders(): SourceFolders {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'svc-files-')));
  process.env.HOME = directory;
  delete process.env.XDG_CONFIG_HOME;
  for (const [name, value] of [
    ['user.email', 'ada@example.com'],
    ['user.name', 'Ada'],
    ['protocol.file.allow', 'always'],
  ] as const)
    git(directory, 'config', '--global', name, value);
  const load = <Part>(source: string): Part => {
    const output = path.join(directory, `${path.basename(source)}.cjs`);
    bundlePart(source, output);
    return createRequire(__filename)(output) as Part;
  };
  const { findSourceFiles } = load<Pick<SourceFolders, 'findSourceFiles'>>('source/files.ts');
  const folderOf = (files: Record<string, string>): string => {
    const folder = fs.mkdtempSync(path.join(directory, 'folder-'));
    write(folder, files);
    return folder;
  };
  return {
    ...{ directory, findSourceFiles, folderOf },
    namesIn: (folder) => findSourceFiles(folder).files.map(({ name }) => name),
    repositoryOf(files, ...tracked) {
      const folder = folderOf(files);
      git(folder, 'init', '--quiet');
      if (tracked.length) git(folder, 'add', '--force', '--', ...tracked);
      git(folder, 'commit', '--quiet', '--allow-empty', '--message=first');
      return folder;
    },
    remove: () => fs.rmSync(directory, { recursive: true, force: true }),
  };
}
