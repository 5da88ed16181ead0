// Names of time zones: a server knows them from tables that its installation leaves empty. They are filled from the
// host's zones, and again when those change. What the program writes for `posix` and `right` is three quarters of the
// whole and the same zones again: they are left out.
import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ProgramFound } from '../../../core/catalog/host_facts';
import { absentIsNull } from '../../../core/files';
import type { ServerNotes } from '../server_notes';
import type { Query } from './connection';
import { toolOf } from './server';

const zoneinfo = '/usr/share/zoneinfo';
const copies = ['posix', 'right'];
const noteName = 'time_zones';
const programWithinMs = 30_000;
const textBytesMax = 64 << 20;
const retryAfterMs = 3_600_000;

/** `failed_at`: ms since the epoch. A server without names of zones is still a server: it is tried again later. */
interface ZonesNote {
  version: string;
  failed_at?: number;
}

/** Whether the tables lack the zones of the host. Never where the host has none. */
export async function lacksTimeZones(notes: ServerNotes, query: Query): Promise<boolean> {
  const version = await hostZones();
  if (version === null) return false;
  const note = await notes.readNote<ZonesNote>(noteName);
  if (note?.failed_at !== undefined && Date.now() - note.failed_at < retryAfterMs) return false;
  if (note?.version !== version || note.failed_at !== undefined) return true;
  // Replaced data begin without.
  const rows = await query('SELECT 1 FROM mysql.time_zone_name LIMIT 1');
  return rows.length === 0;
}

/** Fills the tables where they lack zones. Sessions keep the rules of a zone that the server has used before. */
export async function ensureTimeZones(notes: ServerNotes, found: ProgramFound, query: Query): Promise<void> {
  if (!(await lacksTimeZones(notes, query))) return;
  const version = String(await hostZones());
  // A fill that is cut short must not pass for a whole one.
  await notes.writeNote(noteName, null);
  try {
    await query('USE mysql');
    for (const statement of await zoneStatements(found)) await query(statement);
    await notes.writeNote(noteName, { version });
  } catch (error) {
    if (isLost(error as NodeJS.ErrnoException)) throw error;
    await notes.writeNote(noteName, { version, failed_at: Date.now() });
  }
}

/** The connection, or the server. */
function isLost({ code, syscall }: NodeJS.ErrnoException): boolean {
  return code === 'PROTOCOL_CONNECTION_LOST' || (syscall !== undefined && !syscall.startsWith('spawn'));
}

/** What the program says about all zones, without those under `posix` and `right`. */
async function zoneStatements(found: ProgramFound): Promise<string[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'platform-zones-'));
  try {
    for (const name of await readdir(zoneinfo))
      if (!copies.includes(name)) await symlink(path.join(zoneinfo, name), path.join(directory, name));
    const program = toolOf(found, 'mariadb-tzinfo-to-sql');
    const options = { timeout: programWithinMs, maxBuffer: textBytesMax, env: { LC_ALL: 'C' } };
    const { stdout } = await promisify(execFile)(program, [directory], options);
    return stdout
      .split(/;\n/)
      .map((one) => one.trim())
      .filter((one) => one !== '');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The version of the host's zones; null where it has none. */
async function hostZones(): Promise<string | null> {
  const text = path.join(zoneinfo, 'tzdata.zi');
  const source = (await stat(text).catch(absentIsNull)) ?? (await stat(zoneinfo).catch(absentIsNull));
  if (source === null) return null;
  return `${await firstLine(text)} ${source.size} ${source.mtimeMs}`;
}

async function firstLine(file: string): Promise<string> {
  const handle = await open(file).catch(absentIsNull);
  if (handle === null) return '';
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
    return buffer.toString('latin1', 0, bytesRead).split('\n')[0]!;
  } finally {
    await handle.close();
  }
}
