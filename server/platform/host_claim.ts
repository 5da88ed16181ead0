// One process of an installation runs its applications, and only one machine has their files. On one machine the port
// of the ingress tells; between machines a lock in the control database does, which ends with the session that holds
// it.
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import { openSession, type OwnSession } from './session';

const KEY = `hashtext('platform-api applications')`;
const CLAIM = `select pg_try_advisory_lock(${KEY}, 0) as held`;
const HOLDER = `select a.application_name as name, a.client_addr as address from pg_locks l
  join pg_stat_activity a on a.pid = l.pid join pg_database d on d.oid = l.database
  where l.locktype = 'advisory' and l.granted and d.datname = current_database() and l.objid = 0 and l.objsubid = 2
    and l.classid::bigint::bit(32) = ${KEY}::bit(32)`;
/**
 * So that the server notices a machine that lost its power (of a socket of this machine they are without effect), and a
 * process that hangs, whose machine answers for it.
 */
const KEEP_ALIVE = `set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 3; set tcp_keepalives_count = 3;
  set tcp_user_timeout = 15000; set idle_session_timeout = 15000`;
const AGAIN_MS = 500;
/** Together sooner than the server ends the session: who is cut off begins no work when another may. */
const PROVE_EVERY_MS = 3_000;
const SILENT_MS = 6_000;
const NAME = 'platform host';

export interface HostClaim {
  /** Whether work on applications may begin now. */
  isHeld(): boolean;
  /** Resolves when another process has taken it over while the database was away. */
  readonly lost: Promise<void>;
  release(): Promise<void>;
}

/** Another process of the installation has the applications. */
export class HostTaken extends Error {
  constructor(
    message: string,
    /** Else the machine may be gone, and the database not know it yet. */
    readonly isHere: boolean,
  ) {
    super(message);
  }
}

/** @throws HostTaken; Error of the connection */
export async function claimHost(databaseUrl: string, log: Logger): Promise<HostClaim> {
  let session: OwnSession | null = await claim(databaseUrl);
  let provedAt = performance.now();
  const closing = new AbortController();
  let lose = (): void => {};
  const lost = new Promise<void>((resolve) => (lose = resolve));
  const keep = async (): Promise<void> => {
    for (;;) {
      await session?.ended;
      session = null;
      if (closing.signal.aborted) return;
      log.warn('the session that holds the applications has ended; it is opened again');
      while (session === null) {
        await sleep(AGAIN_MS, undefined, { signal: closing.signal }).catch(() => {});
        if (closing.signal.aborted) return;
        const found = await claim(databaseUrl).catch((error: unknown) => (error instanceof HostTaken ? error : null));
        if (found instanceof HostTaken) {
          log.error({ reason: found.message }, 'another process has taken over the applications');
          return lose();
        }
        session = found;
        provedAt = performance.now();
      }
    }
  };
  const kept = keep();
  const failure = 'the session that holds the applications does not answer';
  const proving = repeatWork({ name: 'host_claim', everyMs: PROVE_EVERY_MS, log, failure }, async () => {
    const proved = session;
    if (proved === null) return;
    const silent = setTimeout(() => proved.destroy(), SILENT_MS);
    const sentAt = performance.now();
    await proved.query('select 1').finally(() => clearTimeout(silent));
    provedAt = sentAt;
  });
  return {
    lost,
    // A process that hung must not go on before it has heard what became of the session.
    isHeld: () => session !== null && performance.now() - provedAt < PROVE_EVERY_MS + SILENT_MS,
    async release() {
      closing.abort();
      await proving.stop();
      await session?.close();
      await kept;
    },
  };
}

async function claim(databaseUrl: string): Promise<OwnSession> {
  const session = await openSession(databaseUrl, `${NAME} ${hostname()} ${process.pid}`);
  try {
    await session.query(KEEP_ALIVE);
    if ((await session.query<{ held: boolean }>(CLAIM))[0]?.held) return session;
    const [holder] = await session.query<{ name: string; address: string | null }>(HOLDER);
    throw taken(holder?.name ?? '', holder?.address ?? null);
  } catch (error) {
    await session.close();
    throw error;
  }
}

function taken(name: string, address: string | null): HostTaken {
  const [, machine = 'an unknown machine', pid = ''] = /^platform host (\S+) (\d+)$/.exec(name) ?? [];
  const at = [machine, pid && `process ${pid}`, address && machine !== hostname() && `from ${address}`];
  return new HostTaken(
    `another process runs the applications of this installation: ${at.filter(Boolean).join(', ')}. Stop it first, or ` +
      'set WORKER=separate here',
    machine === hostname(),
  );
}
