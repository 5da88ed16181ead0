// A Git server, and sources on a directory of their own, for tests of the source driver.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { driverContext, type DriverContext } from '../../../core/driver';
import { SourceError, type GitRemote, type SourceDriver, type SourceFailure } from '../../../drivers/source';
import { openSource, type SourceOptions } from '../../../drivers/source/git';
import { startGitServer, type GitServer } from '../git/git_server';
import { anyAddress } from '../outbound';

export interface SourceBench {
  folder: string;
  server: GitServer;
  /** Everything is allowed on it. */
  source: SourceDriver;
  /** On a directory of its own. */
  strict(options: Partial<SourceOptions>): Promise<SourceDriver>;
  /** A name that was not used before. */
  fresh(word: string): string;
  remote(name: string): GitRemote;
  /** The folder that the files of the commit were written into. */
  exported(id: string, from: GitRemote, sha: string, by?: SourceDriver): Promise<string>;
  expectFailure(work: Promise<unknown>, reason: SourceFailure, words: RegExp): Promise<SourceError>;
  close(): Promise<void>;
}

export const everythingAllowed = { allowHttpGit: true, allowLocalGit: true, outbound: anyAddress, sizeMb: 64 };

export async function openSourceBench(): Promise<SourceBench> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'source-'));
  const server = await startGitServer();
  let next = 0;
  const bench: SourceBench = {
    folder,
    server,
    source: await openSource({ ...everythingAllowed, directory: path.join(folder, 'runtime') }),
    strict: (options) =>
      openSource({ ...everythingAllowed, directory: path.join(folder, bench.fresh('runtime')), ...options }),
    fresh: (word) => `${word}-${(next += 1)}`,
    remote: (name) => ({ address: server.url(name) }),
    async exported(id, from, sha, by = bench.source) {
      const target = path.join(folder, bench.fresh('files'));
      await by.export(id, from, sha, target, soon());
      return target;
    },
    async expectFailure(work, reason, words) {
      const error: unknown = await work.then(
        () => null,
        (refused: unknown) => refused,
      );
      if (!(error instanceof SourceError)) throw new Error(`no SourceError but ${String(error)}`);
      expect(error).toMatchObject({ failure: reason, message: expect.stringMatching(words) });
      expect(error.message).not.toContain(folder);
      return error;
    },
    async close() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return bench;
}

export function soon(ms = 20_000): DriverContext {
  return driverContext(ms);
}

/** The content of all files below the directory, as one text. */
export function everythingBelow(directory: string): string {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1')).join('\n');
}
