// Rows of after the backup may name files that are not in it: they are counted by kind, for the operator.
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import type { OwnSession } from '../platform/session';

/** The clocks of the file system and of the database may differ, and a file is written before its row. */
const SLACK_MS = 3_600_000;

interface Kind {
  /** As in `3 objects`. */
  name: string;
  /** Of the data directory. */
  directory: string;
  /** Names of files that rows since then need, and how a person calls each. */
  sql: string;
}

const KINDS: readonly Kind[] = [
  {
    ...{ name: 'objects', directory: 'objects' },
    sql: `select o.file_id as file, b.name || '/' || o.key as title from bucket_objects o
      join buckets b on b.id = o.bucket_id where o.file_id is not null and o.modified_at >= $1
      union all select p.file_id, b.name || '/' || o.key from bucket_object_parts p
      join bucket_objects o on o.id = p.object_id join buckets b on b.id = o.bucket_id where o.modified_at >= $1`,
  },
  {
    ...{ name: 'layers of container images', directory: 'registry' },
    sql: `select split_part(digest, ':', 2) as file, digest as title from registry_blobs where touched_at >= $1`,
  },
  {
    ...{ name: 'volumes', directory: 'volumes' },
    sql: `select id as file, name as title from volumes where deleted_at is null and created_at >= $1
      and driver in ('directory', 'loop_image')`,
  },
];

/**
 * A sentence for each kind.
 * @param rowsAt RFC 3339 @param filesAt when the files were copied
 */
export async function missingFiles(
  config: Config,
  session: OwnSession,
  { rowsAt, filesAt }: { rowsAt: string; filesAt: string },
): Promise<string[]> {
  const notes = [`Rows are of ${secondsOf(rowsAt)}, files of ${secondsOf(filesAt)}.`];
  const since = new Date(Date.parse(filesAt) - SLACK_MS).toISOString();
  for (const { name, directory, sql } of KINDS) {
    const wanted = await namedSince(session, sql, since);
    if (wanted === null) notes.push(`Missing ${name} could not be counted: the backup is of another release.`);
    if (!wanted) continue;
    const there = wanted.length ? await namesBelow(path.join(config.dataDir, directory)) : new Set();
    const missing = wanted.filter(({ file }) => !there.has(file)).map(({ title }) => title);
    if (missing.length) notes.push(sentence(name, [...new Set(missing)]));
  }
  return notes;
}

interface Named {
  file: string;
  title: string;
}

/** Null where the database has other columns. It is migrated when the service starts. */
async function namedSince(session: OwnSession, sql: string, since: string): Promise<Named[] | null> {
  return session.query<Named>(sql.replaceAll('$1', `'${since}'`)).catch((error: Error & { code?: string }) => {
    if (error.code?.startsWith('42')) return null;
    throw error;
  });
}

const NAMED = 5;

function sentence(name: string, titles: readonly string[]): string {
  const more = titles.length > NAMED ? ' …' : '.';
  return `Of after the files, and missing: ${titles.length} ${name}: ${titles.slice(0, NAMED).join(', ')}${more}`;
}

function secondsOf(at: string): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

async function namesBelow(directory: string): Promise<Set<string>> {
  const entries = await readdir(directory, { recursive: true }).catch(() => [] as string[]);
  return new Set(entries.map((entry) => path.basename(entry)));
}
