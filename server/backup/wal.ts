// Brings the write-ahead log of the embedded database, and that of managed PostgreSQL databases, to the repository as
// it is written. A replication slot keeps the log of the embedded one until it is copied: its package has no
// pg_receivewal, and a copy of the segment that is being written needs no switch to another one of 16 MiB.
import { createHash } from 'node:crypto';
import { copyFile, mkdir, readdir, rename, rm, truncate } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { CommandError } from '../command_error';
import { embeddedDataDirectory } from '../platform/embedded/base_backup';
import type { OwnSession } from '../platform/session';
import { findArchivedFiles, type ArchivedFile } from './wal_of_databases';
import {
  readWalPush,
  readWalStart,
  saveWalPush,
  saveWalStart,
  walDirectory,
  type WalStart,
} from '../platform/wal_state';
import type { WalRepository } from './wal_repository';

const SLOT = 'platform_backup';
const SEGMENT = /^[0-9A-F]{24}$/;
/** The repository has been away for long: beyond it, the log begins anew with the next backup. */
const BYTES_MAX = 8 * 2 ** 30;

/** One at a time: the service, and a command that has made a backup. */
const LOCK = `select pg_advisory_lock(hashtext('platform-api write-ahead log'))`;
const UNLOCK = `select pg_advisory_unlock(hashtext('platform-api write-ahead log'))`;

/** From now on the log is kept until it is copied. A slot that was not there: what was copied before leads nowhere. */
export async function beginWal(config: Config, session: OwnSession): Promise<void> {
  const [slot] = await session.query<{ wal_status: string }>(
    `select wal_status from pg_replication_slots where slot_name = '${SLOT}'`,
  );
  if (slot && slot.wal_status !== 'lost') return;
  if (slot) await session.query(`select pg_drop_replication_slot('${SLOT}')`);
  await cutWal(config);
  await session.query(`alter system set max_slot_wal_keep_size = '${BYTES_MAX / 2 ** 20}MB'`);
  await session.query('select pg_reload_conf()');
  await session.query(`select pg_create_physical_replication_slot('${SLOT}', true)`);
}

/** Where nothing is backed up any more, the log is kept for nobody. */
export async function endWal(config: Config, session: OwnSession): Promise<void> {
  const slots = await session.query(
    `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '${SLOT}'`,
  );
  if (slots.length) await cutWal(config);
}

/** Whether the log of the database is kept since before now: a backup that begins now can be led on from. */
export async function isWalKept(session: OwnSession): Promise<boolean> {
  return (await session.query(`select 1 from pg_replication_slots where slot_name = '${SLOT}'`)).length > 0;
}

async function cutWal(config: Config): Promise<void> {
  await saveWalStart(config, null);
  await saveWalPush(config, null);
  await rm(walDirectory(config), { recursive: true, force: true });
}

/**
 * Brings what was written since the last call to the repository.
 * @returns bytes that were added; null: nothing was written, or no backup leads on
 * @throws CommandError where the log has a gap, and the next backup begins anew
 */
export async function pushWal(config: Config, session: OwnSession, repository: WalRepository): Promise<number | null> {
  await session.query(LOCK);
  try {
    const start = readWalStart(config);
    return start === null ? null : await push(config, session, repository, start);
  } finally {
    await session.query(UNLOCK);
  }
}

async function push(
  config: Config,
  session: OwnSession,
  repository: WalRepository,
  start: WalStart,
): Promise<number | null> {
  const last = readWalPush(config);
  const archived = await findArchivedFiles(config, Date.parse(start.at));
  const digest = digestOf(archived);
  const isLed = last?.point === start.point && last.archived === digest;
  const checked_at = new Date().toISOString();
  if (isLed && (await nextTransaction(session)) === last.next_transaction) {
    await saveWalPush(config, { ...last, checked_at });
    return null;
  }
  const end = await markEnd(session);
  if (last !== null && bytesBetween(last.lsn, end.lsn) < 0) {
    await cutWal(config);
    throw new CommandError('the control database is older than its log in the repository: a new backup is made');
  }
  await copySegments(config, session, start, end);
  const paths = [walDirectory(config), ...archived.map(({ file }) => file)];
  const parent = last?.snapshot ?? null;
  const [snapshot, added] = await repository.push(paths, { point: start.point, until: end.at }, parent);
  await saveWalPush(config, {
    ...{ point: start.point, snapshot, until: end.at, checked_at: end.at, lsn: end.lsn, added_bytes: added },
    ...{ next_transaction: end.next, archived: digest },
  });
  return added;
}

function digestOf(files: readonly ArchivedFile[]): string {
  return createHash('sha256').update(JSON.stringify(files)).digest('hex');
}

async function nextTransaction(session: OwnSession): Promise<string> {
  const [row] = await session.query<{ next: string }>('select pg_snapshot_xmax(pg_current_snapshot())::text as next');
  return row!.next;
}

interface WalEnd {
  /** RFC 3339: commits of before are in the log. */
  at: string;
  lsn: string;
  segment: string;
  segmentBytes: number;
  next: string;
}

/** A commit of our own ends the log, so that a recovery to a moment of before finds one behind it and stops. */
async function markEnd(session: OwnSession): Promise<WalEnd> {
  const [{ at }] = (await session.query<{ at: string }>('select clock_timestamp() as at')) as [{ at: string }];
  await session.query(`select pg_logical_emit_message(true, 'platform_backup', '')`);
  const [row] = await session.query<Omit<WalEnd, 'at'>>(
    `select lsn::text, pg_walfile_name(lsn) as segment, pg_snapshot_xmax(pg_current_snapshot())::text as next,
        (select setting::int from pg_settings where name = 'wal_segment_size') as "segmentBytes"
      from pg_current_wal_flush_lsn() as lsn`,
  );
  return { ...row!, at: new Date(at).toISOString() };
}

/** @throws CommandError where a segment is missing, or there are too many */
async function copySegments(
  config: Config,
  session: OwnSession,
  start: WalStart,
  { lsn, segment, segmentBytes }: WalEnd,
): Promise<void> {
  const [to, data] = [walDirectory(config), embeddedDataDirectory(config.dataDir)];
  await mkdir(to, { recursive: true, mode: 0o700 });
  if (data === null) throw new CommandError('the control database is not in the data directory');
  const from = path.join(data, 'pg_wal');
  const copied = (await readdir(to)).filter((name) => SEGMENT.test(name));
  for (const name of copied.filter((one) => one < start.segment)) await rm(path.join(to, name), { force: true });
  // The last one of before was not full.
  const newest = copied.sort().at(-1);
  const first = newest === undefined || newest < start.segment ? start.segment : newest;
  const names = (await readdir(from)).filter((name) => SEGMENT.test(name) && name >= first && name <= segment);
  if (!names.includes(first)) {
    await cutWal(config);
    throw new CommandError(`the write-ahead log has lost ${first}: a new backup is made`);
  }
  for (const name of names.sort()) await copySegment(path.join(from, name), path.join(to, name));
  await zeroBehind(path.join(to, segment), Number(positionOf(lsn) % BigInt(segmentBytes)), segmentBytes);
  if ((await readdir(to)).length * segmentBytes <= BYTES_MAX) return;
  await session.query(`select pg_drop_replication_slot('${SLOT}')`);
  await cutWal(config);
  throw new CommandError('the write-ahead log waits for the repository for too long: a new backup is made');
}

async function copySegment(from: string, to: string): Promise<void> {
  await copyFile(from, `${to}.new`);
  await rename(`${to}.new`, to);
}

/** What follows the end is of another segment, whose file was taken for this one. */
async function zeroBehind(file: string, bytes: number, segmentBytes: number): Promise<void> {
  // At the border between two, the name is that of the full one.
  if (bytes === 0) return;
  await truncate(file, bytes);
  await truncate(file, segmentBytes);
}

/** The log up to there is in the repository or copied: the server may take its files again. */
export async function releaseWal(config: Config, session: OwnSession): Promise<void> {
  const last = readWalPush(config);
  if (last !== null) await session.query(`select pg_replication_slot_advance('${SLOT}', '${last.lsn}')`);
}

function bytesBetween(from: string, to: string): number {
  return Number(positionOf(to) - positionOf(from));
}

function positionOf(lsn: string): bigint {
  const [high = '0', low = '0'] = lsn.split('/');
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}
