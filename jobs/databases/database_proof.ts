// Proofs of backups: one is restored into a server aside, as a copy would be, and checked; then nothing is left of it.
// A proof that was killed begins anew, after what it left has been removed.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError, StillRunning } from '../../core/driver';
import { toSentence } from '../../core/sentence';
import { releaseAllLeases } from '../../db/lease';
import type { ServerSpec } from '../../drivers/database';
import {
  databaseStatus,
  endProof,
  findAssertion,
  findProvenBackup,
  moveProof,
  NO_ROOM_MS,
  PROOFS_TABLE,
  proofsWithoutRow,
  setProof,
  type ProofResult,
} from '../../models/databases/database_proof';
import { findDatabase } from '../../models/databases/database_backup/job_queries';
import { freePorts } from '../../models/databases/database/ports';
import type { Leftovers } from '../declarations';
import {
  gone,
  LeaseLost,
  progressing,
  requireHost,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
} from '../job';
import { requireRoomForProof } from './database_proof/room';
import { requireEngineDriver, type DatabaseRow } from './database/row';
import { desiredServer } from './database/spec';

export interface ProofRow extends LoopRow {
  database_id: string;
  backup_id: string;
  engine: DatabaseRow['engine'];
  port: number;
}

const MINUTE_MS = 60_000;
const LONGEST_MS = 6 * 60 * MINUTE_MS;
/** A store that is away is looked at again, as long as it takes. */
const AWAY_MS = 5 * MINUTE_MS;
const BUSY_MS = 10 * MINUTE_MS;
/** A key that the store refuses may be right again. */
const REFUSED_MS = 6 * 60 * MINUTE_MS;
const WATCH_MS = 2_000;
const SETTLE_MS = 500;
const INTERNAL_ATTEMPTS = 3;
/** A MariaDB that loads a value of 64 MB (drivers/database/mariadb/backup.ts). */
const LOAD_MEMORY_MB = 1_024;
const MEMORY_MAX_MB = 1_024;

/** Servers of proofs whose row is gone, as after a restore of the control database. */
const leftovers: Leftovers = {
  kind: 'database_proof',
  async *list({ host }, ctx) {
    for (const driver of host?.databases.values() ?? [])
      for await (const { owner_id: id } of driver.list(ctx)) if (id.startsWith('prf_')) yield [{ id }];
  },
  withoutRow: proofsWithoutRow,
  async remove(id, { databases }, ctx) {
    for (const driver of databases.values()) await driver.forget(id, ctx);
  },
};

export const job: Job<ProofRow> = {
  table: PROOFS_TABLE,
  host: true,
  quiet: true,
  units: { prefixes: ['prf'], column: 'id' },
  leftovers: [leftovers],
  stepMs: LONGEST_MS,
  prepare: (sql) => releaseAllLeases(sql, PROOFS_TABLE),
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : prove(row, ctx)),
};

async function tearDown(row: ProofRow, ctx: JobContext): Promise<Outcome> {
  await requireHost(ctx).databases.get(row.engine)?.forget(row.id, ctx);
  return gone;
}

async function prove(row: ProofRow, ctx: JobContext): Promise<Outcome> {
  // What a killed step has left.
  await requireHost(ctx).databases.get(row.engine)?.forget(row.id, ctx);
  const result = await proofOf(row, ctx);
  // The server is gone before its memory is promised to the next one.
  await requireHost(ctx).databases.get(row.engine)?.forget(row.id, ctx);
  await ctx.sql.transaction(async (session) => {
    if (result) await setProof(session, row.backup_id, result);
    await endProof(session, row.id);
  });
  return progressing(0);
}

/** null: there is nothing to prove any more. @throws StillRunning, and what is no end of the proof */
async function proofOf(row: ProofRow, ctx: JobContext): Promise<ProofResult | null> {
  const [database, backup] = [
    await findDatabase<DatabaseRow>(ctx.sql, row.database_id),
    await findProvenBackup(ctx.sql, row.backup_id),
  ];
  if (!database || database.deleted_at || !backup) return null;
  const began = Date.now();
  try {
    const spec = await scratchServer(row, database, backup.engine_version, ctx);
    await requireRoomForProof({ database, backup, memory_mb: spec.size.memory_mb }, ctx);
    await setProof(ctx.sql, row.backup_id, { status: 'running', failure: null });
    return await whileAtRest(row, ctx, (own) => restoreAndVerify(row, database, spec, own));
  } catch (error) {
    return afterFailure(row, error, Math.round((Date.now() - began) / 1000), ctx);
  }
}

async function restoreAndVerify(
  row: ProofRow,
  database: DatabaseRow,
  spec: ServerSpec,
  ctx: JobContext,
): Promise<ProofResult> {
  const driver = requireEngineDriver(ctx, database);
  const server = { id: row.id, spec };
  const from = { server_id: database.server_id, backup_id: row.backup_id };
  const began = Date.now();
  await driver.restore(server, { ...from, id: 'proof', until: null }, ctx);
  for (;;) {
    const { requeueMs } = await driver.ensure(server, await driver.observe(server, ctx), ctx);
    if (requeueMs === undefined) break;
    await sleep(Math.max(requeueMs, SETTLE_MS), undefined, { signal: ctx.signal });
  }
  const seconds = Math.max(1, Math.round((Date.now() - began) / 1000));
  const assertion = await findAssertion(ctx.sql, database.id);
  if (!driver.verifyRestored) throw new DriverError('unsupported', 'The engine does not check restored data.');
  const { rows } = await driver.verifyRestored(server, from, assertion, ctx);
  return { status: 'proven', failure: null, seconds, rows };
}

/** A server with the data of the database, that nobody else can log in to. */
async function scratchServer(
  row: ProofRow,
  database: DatabaseRow,
  version: string,
  ctx: JobContext,
): Promise<ServerSpec> {
  const { spec } = await desiredServer(database, { ...ctx, record: () => Promise.resolve() });
  const users = spec.users.filter(({ second_of }) => second_of === undefined);
  const { memory_mb } = spec.size;
  // Keys of Redis are all in its memory; others read files.
  const memory =
    spec.engine === 'mariadb'
      ? LOAD_MEMORY_MB
      : spec.engine === 'postgresql'
        ? Math.min(memory_mb, MEMORY_MAX_MB)
        : memory_mb;
  return {
    ...spec,
    version,
    port: await freePort(row, ctx),
    size: { ...spec.size, memory_mb: memory },
    running: true,
    low_priority: true,
    archive: false,
    admin_password: password(),
    users: users.map(({ username, access }) => ({ username, access, password: password() })),
    ...{ network: undefined, allowed_sources: [], replicas: [] },
  };
}

const password = (): string => randomBytes(24).toString('base64url');

async function freePort(row: ProofRow, ctx: JobContext): Promise<number> {
  const { runtime } = requireHost(ctx);
  if (await runtime.isPortFree(row.port)) return row.port;
  for (const port of await freePorts(ctx.sql, ctx.config.databasePorts)) {
    if (!(await runtime.isPortFree(port))) continue;
    await moveProof(ctx.sql, row.id, port);
    return port;
  }
  throw new DriverError('capacity', 'No port of `DATABASE_PORTS` is free.');
}

/** The database is being changed: the proof waits for its end. */
class DatabaseBusy extends DriverError {
  constructor() {
    super('transient', 'The database is being restored or changed. The proof waits for the end of that.');
  }
}

/** Never beside a restore of the database itself, which has the disk for itself. */
async function whileAtRest<T>(row: ProofRow, ctx: JobContext, work: (own: JobContext) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const isBusy = async (): Promise<boolean> => {
    const status = await databaseStatus(ctx.sql, row.database_id);
    return status === 'restoring' || status === 'upgrading' || status === null;
  };
  if (await isBusy()) throw new DatabaseBusy();
  let [busy, over] = [false, false];
  const watch = (async () => {
    while (!over && !busy) {
      await sleep(WATCH_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      if (!over) busy = await isBusy().catch(() => false);
    }
    if (busy) stop.abort();
  })();
  try {
    return await work({ ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) });
  } catch (error) {
    throw busy && !ctx.signal.aborted ? new DatabaseBusy() : error;
  } finally {
    over = true;
    stop.abort();
    await watch;
  }
}

/** @throws error where the proof goes on, or the platform has failed and not the backup */
function afterFailure(row: ProofRow, error: unknown, seconds: number, ctx: JobContext): ProofResult {
  if (ctx.signal.aborted || error instanceof StillRunning || error instanceof LeaseLost) throw error;
  ctx.log.warn({ err: error, backup: row.backup_id }, 'a backup was not proven');
  const waiting = (failure: string, againMs: number): ProofResult => ({ status: 'waiting', failure, againMs });
  if (error instanceof DatabaseBusy) return waiting(error.message, BUSY_MS);
  if (!(error instanceof DriverError)) {
    if (row.attempts + 1 < INTERNAL_ATTEMPTS) throw error;
    return waiting('The platform met an internal error. The proof is tried again.', REFUSED_MS);
  }
  const reason = toSentence(error.message);
  if (error.engineAway) return waiting(`${reason} The proof waits for it.`, AWAY_MS);
  if (error.reason === 'capacity') return waiting(reason, NO_ROOM_MS);
  // What may be no fault of the backup is tried once more before the owner hears of it.
  if (error.reason === 'transient' && row.attempts === 0) throw error;
  const mayPass = error.reason === 'transient' || error.reason === 'unauthorized' || error.reason === 'unsupported';
  return { status: 'failed', failure: reason, seconds, rows: null, ...(mayPass && { againMs: REFUSED_MS }) };
}
