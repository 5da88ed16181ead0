// Proofs of backups: one is restored aside at a time, by the job of `database_proofs`, which has at most one row. The
// newest backup of a database is proven once, without a request: a restore starts from it, and one that a newer one has
// overtaken would take time from databases that have no proof yet. Others are proven when somebody asks.
import type { Sql } from '../../core/context';
import { mintId, timeOfId } from '../../core/ids';
import { changeRows, makeRowsDue } from '../../db/loop_rows';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import { recordEvent } from '../projects/activity';
import type { DatabaseProofStatus } from '../../schema/types';

/** Of backups that no host can restore. */
export const UNPROVEN_IN_PODS =
  'Backups of databases in pods of a cluster are not proven. Restore one into a new database to try it.';

export const PROOFS_TABLE = 'database_proofs';

const NEWEST = `b.id = (select n.id from database_backups n where n.database_id = b.database_id
  and n.status = 'completed' and n.deleted_at is null order by n.id desc limit 1)`;
// One that waited for room until a newer one was made.
const OVERTAKEN = named(`update database_backups b set proof_status = 'unproven', proof_failure = null,
    proof_due_at = null, observed_generation = observed_generation + 1
  where b.proof_status = 'waiting' and b.proof_requested_at is null and b.deleted_at is null and not (${NEWEST})`);
const ANY = named('select 1 from database_proofs limit 1');
const NEXT = named(`select b.id, b.project_id, b.database_id, d.engine
  from database_backups b join databases d on d.id = b.database_id
  where b.deleted_at is null and b.status = 'completed' and d.deleted_at is null and not d.on_cluster
    and d.status in ('available', 'stopped') and (b.proof_due_at is null or b.proof_due_at <= now())
    and (b.proof_requested_at is not null or b.proof_status in ('unproven', 'waiting', 'running') and ${NEWEST}
      or b.proof_status = 'failed' and b.proof_due_at is not null and ${NEWEST})
  order by b.proof_requested_at nulls last, d.proof_tried_at nulls first, b.id desc limit 1`);
const CLAIM_PORT = named(`insert into database_ports (port, owner_id)
  select min(port), $3 from generate_series($1::int, $2::int) as port
    where not exists (select 1 from database_ports d where d.port = port.port)
  having min(port) is not null returning port`);
const LOCK = named(`select pg_advisory_xact_lock(hashtext('database capacity'))`);
const INSERT = named(`insert into database_proofs (id, project_id, database_id, backup_id, engine, port, created_at,
    updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $7)`);

interface NextBackup {
  id: string;
  project_id: string;
  database_id: string;
  engine: string;
}

/** Its task looks at once whose turn it is. */
export async function wakeProofs(sql: Sql): Promise<void> {
  await makeRowsDue(sql, { table: 'schedules', where: 'id = $1', values: ['prove_backups'] });
}

/** Begins the proof of the backup whose turn it is, unless another one is under way. @returns how many were begun */
export function scheduleProof(sql: Session, ports: readonly [number, number]): Promise<number> {
  return sql.transaction(async (session) => {
    await session.query(LOCK, []);
    if ((await session.query(ANY, [])).length) return 0;
    await session.query(OVERTAKEN, []);
    const [next] = await session.query<NextBackup>(NEXT, []);
    if (!next) return 0;
    const id = mintId('prf');
    const [claimed] = await session.query<{ port: number }>(CLAIM_PORT, [...ports, id]);
    if (!claimed) {
      await setProof(session, next.id, {
        ...{ status: 'waiting', failure: 'All ports of `DATABASE_PORTS` are in use. The proof waits for one.' },
        againMs: NO_ROOM_MS,
      });
      return 0;
    }
    const at = timeOfId(id).toISOString();
    const { project_id, database_id, engine } = next;
    await session.query(INSERT, [id, project_id, database_id, next.id, engine, claimed.port, at]);
    session.due(PROOFS_TABLE);
    return 1;
  });
}

/** Until a backup that found no room is tried again. */
export const NO_ROOM_MS = 15 * 60_000;

export interface ProofResult {
  status: DatabaseProofStatus;
  /** A sentence; null: none. */
  failure: string | null;
  /** When it is tried again without a request; absent: not. */
  againMs?: number;
  /** Of a proof that came to its end. */
  seconds?: number;
  rows?: number | null;
}

const SET = named(`update database_backups set proof_status = $2, proof_failure = $3,
    proof_due_at = now() + $4::float8 * interval '1 ms', observed_generation = observed_generation + 1,
    proven_at = case $2 when 'proven' then now() when 'failed' then null else proven_at end,
    proof_seconds = case when $2 in ('proven', 'failed') then $5::int else proof_seconds end,
    proof_rows = case when $2 in ('proven', 'failed') then $6::bigint else proof_rows end,
    proof_requested_at = case when $2 in ('proven', 'failed') then null else proof_requested_at end
  where id = $1 and deleted_at is null
  returning id, project_id, database_id`);
const TRIED = named(`update databases set proof_tried_at = now(), observed_generation = observed_generation + 1,
    recovery_seconds = case when $2::int is not null and not exists (select from database_backups b
      where b.database_id = databases.id and b.proof_status = 'proven' and b.deleted_at is null and b.id > $3)
      then $2 else recovery_seconds end
  where id = $1`);

/** What became of a proof, in the row of its backup and, where it came to its end, in that of its database. */
export async function setProof(sql: Sql, backupId: string, result: ProofResult): Promise<void> {
  const { status, failure, againMs = null, seconds = null, rows = null } = result;
  const [backup] = await sql.query<{ id: string; project_id: string; database_id: string }>(SET, [
    ...[backupId, status, failure, againMs, seconds, rows],
  ]);
  if (!backup || status === 'running') return;
  await sql.query(TRIED, [backup.database_id, status === 'proven' ? seconds : null, backupId]);
  if (status === 'failed') await recordEvent(sql, 'database_backups', backup, 'proof_failed');
}

const ASSERTION = named('select proof_assertion from databases where id = $1');
const DATABASE_STATUS = named('select status from databases where id = $1 and deleted_at is null');
const BACKUP = named(`select engine_version, size_bytes, status from database_backups
  where id = $1 and deleted_at is null`);

export interface ProvenBackup {
  engine_version: string;
  size_bytes: number | null;
}

/** The backup that a proof is of; null where it is gone. */
export async function findProvenBackup(sql: Sql, backupId: string): Promise<ProvenBackup | null> {
  return (await sql.query<ProvenBackup>(BACKUP, [backupId]))[0] ?? null;
}

export async function findAssertion(sql: Sql, databaseId: string): Promise<string | null> {
  return (await sql.query<{ proof_assertion: string | null }>(ASSERTION, [databaseId]))[0]?.proof_assertion ?? null;
}

/** The status of the database now; null where it is gone. */
export async function databaseStatus(sql: Sql, databaseId: string): Promise<string | null> {
  return (await sql.query<{ status: string }>(DATABASE_STATUS, [databaseId]))[0]?.status ?? null;
}

const MOVE_PORT = named('update database_ports set port = $2 where owner_id = $1');
const MOVE_PROOF = named('update database_proofs set port = $2 where id = $1');

/** Another port for the server of a proof, whose own a foreign program uses. */
export function moveProof(sql: Session, id: string, port: number): Promise<void> {
  return sql.transaction(async (session) => {
    await session.query(MOVE_PORT, [id, port]);
    await session.query(MOVE_PROOF, [id, port]);
  });
}

/** The proof is over: its job removes what is on the host, and then the row. */
export async function endProof(sql: Sql, id: string): Promise<void> {
  await changeRows(sql, { table: PROOFS_TABLE, where: 'id = $1', values: [id], set: 'deleted_at = now()' });
}

const WITHOUT_ROW = named(`select id from unnest($1::text[]) as known (id)
  where id like 'prf\\_%' and not exists (select 1 from database_proofs p where p.id = known.id)`);

/** Those of the ids of servers that are of no proof under way, and not of a database either. */
export async function proofsWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(WITHOUT_ROW, [ids])).map(({ id }) => id);
}

const FIGURES = named(`select proof_status as proof, count(*)::int as count from (
    select distinct on (b.database_id) b.proof_status from database_backups b join databases d on d.id = b.database_id
      where b.status = 'completed' and b.deleted_at is null and d.deleted_at is null
      order by b.database_id, b.id desc) as newest group by 1`);

/** Databases by what is known of their newest backup, for metrics. */
export function proofFigures(sql: Pick<Session, 'query'>): Promise<{ proof: DatabaseProofStatus; count: number }[]> {
  return sql.query(FIGURES, []);
}
