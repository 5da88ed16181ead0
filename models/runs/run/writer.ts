// The one client that writes to a run. It renews its right, so that of a process that was killed it ends by itself.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const HELD_SECONDS = 30;
export const RENEW_WRITER_MS = (HELD_SECONDS * 1000) / 3;

const ACQUIRE = named(`update runs set writer = $2, writer_until = now() + interval '${HELD_SECONDS} seconds',
    attached_at = now()
  where id = $1 and (writer is null or writer = $2 or writer_until < now()) returning id`);
const RELEASE = named(
  'update runs set writer = null, writer_until = null, attached_at = now() where id = $1 and writer = $2',
);

/** Also renews it. False where another client writes. @param client names the client, and nothing else */
export async function acquireWriter(sql: Sql, runId: string, client: string): Promise<boolean> {
  return (await sql.query(ACQUIRE, [runId, client])).length > 0;
}

const HOLDER = named('select writer from runs where id = $1');
const TAKE_OVER = named(`update runs set writer = $3, writer_until = now() + interval '${HELD_SECONDS} seconds',
    attached_at = now()
  where id = $1 and writer = $2 returning id`);

/** As acquireWriter; a right whose client `isGone` is taken over. @param isGone given the name of that client */
export async function acquireOrTakeOver(
  sql: Sql,
  runId: string,
  client: string,
  isGone: (holder: string) => boolean,
): Promise<boolean> {
  if (await acquireWriter(sql, runId, client)) return true;
  const [{ writer: holder } = { writer: null }] = await sql.query<{ writer: string | null }>(HOLDER, [runId]);
  if (holder === null) return acquireWriter(sql, runId, client);
  return isGone(holder) && (await sql.query(TAKE_OVER, [runId, holder, client])).length > 0;
}

export async function releaseWriter(sql: Sql, runId: string, client: string): Promise<void> {
  await sql.query(RELEASE, [runId, client]);
}

const WRITTEN = named('select 1 from runs where id = $1 and writer_until > now()');

/** Whether a client writes to the run now. */
export async function hasWriter(sql: Sql, runId: string): Promise<boolean> {
  return (await sql.query(WRITTEN, [runId])).length > 0;
}

const ABANDONED = named(`select 1 from runs where id = $1 and (writer_until is null or writer_until < now())
  and greatest(attached_at, started_at, writer_until) < now() - make_interval(secs => $2)`);

/** Whether no client has written for this time, since it was started or since the last one went. */
export async function isAbandoned(sql: Sql, runId: string, seconds: number): Promise<boolean> {
  return (await sql.query(ABANDONED, [runId, seconds])).length > 0;
}
