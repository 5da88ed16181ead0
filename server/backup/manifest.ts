// What a backup of the installation has in it, as it was when it was made.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../core/config';
import { fileStoreAddress } from '../../drivers/file_store/open';
import { readClaims } from '../../drivers/runtime/sandbox/user_ids';
import { version } from '../../package.json';
import type { OwnSession } from '../platform/session';
import { readStopped } from './stopped_applications';

export interface Manifest {
  format: 1;
  /** Of the release that made it. */
  version: string;
  architecture: string;
  /** RFC 3339. The control database is as it was then or a few seconds later. */
  at: string;
  data_dir: string;
  /** How the control database is in it: its files, or a dump of pg_dump. */
  control: 'embedded' | 'dump';
  /** Whether PLATFORM_SECRET_KEY had the key that encrypts secrets; else it is in the backup. */
  key_in_settings: boolean;
  /** First user id of tenants' files; null where they have the user of the service. */
  user_id_base: number | null;
  /** Rows by table. */
  counts: Record<string, number>;
  /** Applications that were stopped for a move: they start again. Absent: none. */
  stopped?: string[];
  volumes: { id: string; driver: string; size_gb: number }[];
  /** Address of the file store, which has the uploads of sources and the larger messages. Absent: they are in it. */
  file_store?: string;
}

export const MANIFEST = 'manifest.json';

/** The data directory that a backup is of, below a directory to which it was restored; null: not there. */
export function findRestoredRoot(directory: string): string | null {
  if (existsSync(path.join(directory, 'backup/point', MANIFEST))) return directory;
  if (!existsSync(directory)) return null;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const found = entry.isDirectory() ? findRestoredRoot(path.join(directory, entry.name)) : null;
    if (found !== null) return found;
  }
  return null;
}

export async function takeStock(config: Config, session: OwnSession): Promise<Manifest> {
  const volumes = await session.query<Manifest['volumes'][number]>(
    `select id, driver, size_gb from volumes where deleted_at is null and driver in ('directory', 'loop_image')`,
  );
  return {
    ...{ format: 1, version, architecture: process.arch, at: new Date().toISOString(), data_dir: config.dataDir },
    control: config.databaseUrl === null ? 'embedded' : 'dump',
    key_in_settings: config.secretKey !== null,
    user_id_base: userIdBase(config),
    counts: await countRows(session),
    stopped: await readStopped(config),
    volumes,
    ...(config.fileStore !== null && { file_store: fileStoreAddress(config) as string }),
  };
}

/** Rows of every table, by reading all of it: a page that cannot be read fails. */
export async function countRows(session: OwnSession): Promise<Record<string, number>> {
  const tables = await session.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await session.query<{ count: string }>(`select count(*) from "${name}"`);
    counts[name] = Number(row?.count);
  }
  return counts;
}

function userIdBase({ tenantUidBase, runtimeDir }: Config): number | null {
  if (process.getuid?.() !== 0) return null;
  return tenantUidBase ?? [...readClaims()].find(([, directory]) => directory === runtimeDir)?.[0] ?? null;
}
