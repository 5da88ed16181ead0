// Proves a backup: the control database of it is started aside and read whole, and a share of the repository is
// compared with its checksums.
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Config } from '../../core/config';
import { CommandError } from '../command_error';
import { backupDirectory, readBackupJournal, saveBackupJournal, type Proof } from '../platform/backup_journal';
import { openEmbedded } from '../platform/embedded';
import { openSession } from '../platform/session';
import { DUMP } from '../upgrade/control_backup';
import { countRows, findRestoredRoot, MANIFEST, type Manifest } from './manifest';
import { withProof } from './points';
import type { Repository } from './repository';
import type { WalRepository } from './wal_repository';

/** Of the data of the repository, read at each proof: all of it in about a month of daily ones. */
const READ_PERCENT = 3;
const READ_PERCENT_OF_LOG = 20;
/** Rows that go between the count and the end of the copy of the database. Any number may come: lines of logs do. */
const GONE = { share: 0.1, rows: 500 };

/** Proves a point of a repository. @param log what leads on from it; null: nothing */
export async function provePoint(
  config: Config,
  repository: Repository,
  log: WalRepository | null,
  point: string,
): Promise<Proof> {
  const began = Date.now();
  const proof: Proof = { point, at: new Date().toISOString(), seconds: 0, error: null, manifest: null };
  try {
    const { at, counts } = await compare(config, repository, point);
    proof.manifest = { at, counts };
    await repository.verify(READ_PERCENT);
    if ((await log?.read())?.owners.length) await log?.verify(READ_PERCENT_OF_LOG);
  } catch (error) {
    proof.error = (error as Error).message;
  }
  proof.seconds = Math.round((Date.now() - began) / 100) / 10;
  return proof;
}

/** Keeps the outcome in the journal. */
export async function keepProof(config: Config, proof: Proof): Promise<void> {
  const journal = await readBackupJournal(config);
  if (journal === null) return;
  await saveBackupJournal(config, { ...journal, proof, points: journal.points && withProof(journal.points, proof) });
}

async function compare(config: Config, repository: Repository, point: string): Promise<Manifest> {
  const scratch = path.join(backupDirectory(config), 'proof');
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true, mode: 0o711 });
  try {
    const prepared = await findPrepared(repository, point, scratch);
    const manifest = JSON.parse(await readFile(path.join(prepared, MANIFEST), 'utf8')) as Manifest;
    if (manifest.control === 'dump') await readDump(path.join(prepared, 'control', DUMP));
    else requireSame(manifest, await countRestored(config, scratch, prepared));
    return manifest;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** The directory with manifest and control database, below its path on the machine that made it. */
async function findPrepared(repository: Repository, point: string, scratch: string): Promise<string> {
  const target = path.join(scratch, 'files');
  await repository.restore(point, target, ['backup/point/**']);
  const root = findRestoredRoot(target);
  if (root === null) throw new CommandError(`the backup ${point} has no ${MANIFEST}`);
  return path.join(root, 'backup/point');
}

async function countRestored(config: Config, scratch: string, prepared: string): Promise<Record<string, number>> {
  const home = path.join(scratch, 'postgres');
  await mkdir(home, { mode: 0o711 });
  for (const name of await readdir(path.join(prepared, 'control')))
    await rename(path.join(prepared, 'control', name), path.join(home, name));
  await rename(path.join(prepared, 'password'), path.join(home, 'password'));
  const engine = await openEmbedded({
    ...{ dataDir: scratch, user: config.postgresUser, binaries: config.pgBin ?? undefined },
    flags: ['-c', 'shared_buffers=32MB'],
  });
  try {
    const session = await openSession(engine.url);
    return await countRows(session).finally(() => session.close());
  } finally {
    await engine.close();
  }
}

function requireSame({ counts }: Manifest, found: Record<string, number>): void {
  for (const [table, wanted] of Object.entries(counts)) {
    const rows = found[table];
    if (rows === undefined) throw new CommandError(`the restored control database has no table ${table}`);
    if (wanted - rows > Math.max(GONE.rows, wanted * GONE.share))
      throw new CommandError(`the restored table ${table} has ${rows} rows, and had ${wanted}`);
  }
}

async function readDump(file: string): Promise<void> {
  try {
    await promisify(execFile)('pg_restore', ['--list', file], { maxBuffer: 1 << 26 });
  } catch (error) {
    throw new CommandError(`pg_restore cannot read the dump of the control database: ${(error as Error).message}`);
  }
}
