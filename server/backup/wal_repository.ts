// The repository of restic beside that of the backups, for what is written each half minute: the write-ahead log since
// the last backup, and marks of the owner. Of its own, since a run of restic reads the index of all of a repository,
// and waits for those that prune or check it.
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import type { Config } from '../../core/config';
import { backupDirectory } from '../platform/backup_journal';
import { chosenRepository, ensureRepository, PARTLY_READ, savedOf } from './repository';
import { runRestic, runUnlocked, type Chosen } from './restic';
import { failure, isMissing } from './restic_failure';

export interface WalSnapshot {
  id: string;
  /** Snapshot of the backup that the log leads on from. */
  point: string;
  /** RFC 3339: rows up to then are in it. */
  until: string;
}

/** Who backs up to the repository. The one with the highest generation does. */
export interface OwnerMark {
  snapshot: string;
  /** A random name. */
  id: string;
  generation: number;
  hostname: string;
  /** RFC 3339. */
  at: string;
}

export interface WalRepository {
  /** Makes it where there is none. */
  ensure(): Promise<void>;
  /** Oldest first; none where there is no repository. */
  read(): Promise<{ log: WalSnapshot[]; owners: OwnerMark[] }>;
  /** @param parent snapshot whose files are known to be there @returns the snapshot, and bytes that were added */
  push(paths: readonly string[], of: Omit<WalSnapshot, 'id'>, parent: string | null): Promise<[string, number]>;
  /** Takes away all locks: those of a machine that is gone would count for half an hour. */
  unlock(): Promise<void>;
  mark(file: string, owner: Pick<OwnerMark, 'id' | 'generation'>): Promise<void>;
  restore(snapshot: string, target: string): Promise<void>;
  /** Forgets snapshots, unless another run has locked them. Their data stay until `prune`. */
  forget(snapshots: readonly string[]): Promise<void>;
  prune(): Promise<void>;
  /** As Repository.verify. */
  verify(percent: number): Promise<void>;
}

export function openWalRepository(config: Config): WalRepository {
  const main = chosenRepository(config);
  const chosen: Chosen = { ...main, repository: besideOf(main.repository) };
  const restic = (...words: string[]): Promise<string> => runUnlocked(chosen, words).then(({ out }) => out);
  const backup = async (tags: readonly string[], words: readonly string[]): Promise<[string, number]> => {
    const tagged = tags.flatMap((tag) => ['--tag', tag]);
    // Archived logs and notes of databases may go while they are read.
    const end = await runUnlocked(chosen, ['backup', '--json', ...tagged, ...words], [0, PARTLY_READ]);
    const { id, addedBytes } = savedOf(chosen, end);
    return [id, addedBytes];
  };
  return {
    ensure: () => ensureRepository(chosen),
    async read() {
      const end = await runRestic(chosen, ['snapshots', '--json', '--no-lock']);
      if (isMissing(end.err)) return { log: [], owners: [] };
      if (end.code !== 0) throw failure(chosen, end.err);
      const found = (JSON.parse(end.out) ?? []) as Snapshot[];
      return { log: found.flatMap(walSnapshotOf), owners: found.flatMap(ownerMarkOf) };
    },
    async push(paths, { point, until }, parent) {
      // There may be more of them than a command line holds.
      const list = path.join(backupDirectory(config), 'wal-files');
      await writeFile(list, paths.map((one) => `${one}\0`).join(''));
      const known = parent === null ? ['--force'] : ['--parent', parent];
      return backup(['wal', `of-${point}`, `until-${until}`], [...known, '--files-from-raw', list]);
    },
    async unlock() {
      await runRestic(chosen, ['unlock', '--remove-all']);
    },
    async mark(file, { id, generation }) {
      await backup(['owner', `owner-${id}`, `generation-${generation}`], ['--host', hostname(), file]);
    },
    async restore(snapshot, target) {
      await restic('restore', snapshot, '--target', target);
    },
    async forget(snapshots) {
      if (!snapshots.length) return;
      await runRestic(chosen, ['unlock']);
      await runRestic(chosen, ['forget', ...snapshots]);
    },
    async prune() {
      await restic('prune');
    },
    async verify(percent) {
      await restic('check', `--read-data-subset=${percent}%`);
    },
  };
}

/** A folder of the repository, which restic does not read: of a path, an address, or a bucket such as `b2:name`. */
export function besideOf(repository: string): string {
  if (/^(?:b2|azure|gs|swift|rclone):[^:/]+$/.test(repository)) return `${repository}:wal`;
  return repository.endsWith(':') ? `${repository}wal` : `${repository.replace(/\/+$/, '')}/wal`;
}

interface Snapshot {
  id: string;
  time: string;
  hostname: string;
  tags?: string[];
}

function walSnapshotOf({ id, tags = [] }: Snapshot): WalSnapshot[] {
  const [point, until] = [valueOf(tags, 'of-'), valueOf(tags, 'until-')];
  return tags.includes('wal') && point && until ? [{ id, point, until }] : [];
}

function ownerMarkOf({ id: snapshot, time: at, hostname: host, tags = [] }: Snapshot): OwnerMark[] {
  const [id, generation] = [valueOf(tags, 'owner-'), Number(valueOf(tags, 'generation-'))];
  if (!tags.includes('owner') || !id || !Number.isSafeInteger(generation)) return [];
  return [{ snapshot, id, generation, hostname: host, at }];
}

function valueOf(tags: readonly string[], prefix: string): string | undefined {
  return tags.find((tag) => tag.startsWith(prefix))?.slice(prefix.length);
}
