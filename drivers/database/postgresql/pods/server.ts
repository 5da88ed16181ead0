// A running PostgreSQL in a pod: where it answers, and what is reconciled over a connection, as on a host.
import type { TLSSocket } from 'node:tls';
import { serviceHostOf } from '../../../../core/cluster_names';
import { DriverError } from '../../../../core/driver';
import type { DatabaseServer, ServerMetrics } from '../../../database';
import { NotReady } from '../../../hosted_server/readiness';
import type { PodEngine } from '../../kubernetes/pod_engine';
import { projectIdOf } from '../../kubernetes/objects';
import type { ServerPod } from '../../kubernetes/server_pods';
import type { ServerState } from '../../proxied';
import type { ServerNotes } from '../../server_notes';
import { appliedDigestOf } from '../applied';
import { countersOf } from '../observe';
import { ensureRights, ensureUsers } from '../roles';
import { inSession, isUnavailable, type NetworkAddress, type Session, type Target } from '../session';
import { stageFor } from '../storage';

/** A session in the database `postgres`, and others of the same server. */
export interface PodClient {
  session: Session;
  inDatabase<T>(target: Target, work: (session: Session) => Promise<T>): Promise<T>;
}

const APPLIED = 'applied';
const READ_ONLY = 'default_transaction_read_only';
/** Beside that of the image: another authority, or a name that the certificate does not have. */
const TLS_FAILURE = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const AWAY = new Set(['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);
const REJECTED = new Set(['28P01', '28000']);

/** @throws NotReady */
export function podAddressOf(
  { prefix }: PodEngine,
  server: DatabaseServer,
  { address }: Pick<ServerPod, 'address'>,
): NetworkAddress {
  const { authority } = server.tls;
  if (authority === undefined) throw new Error('the authority of the certificate is needed in a cluster');
  if (address === null) throw new NotReady();
  const serverName = serviceHostOf(prefix, projectIdOf(server), server.id);
  return { host: address, port: server.port, authority, serverName, password: server.admin_password };
}

/** @throws NotReady, also where its certificate is of another server @throws DriverError conflict */
export async function withPod<T>(at: NetworkAddress, work: (client: PodClient) => Promise<T>): Promise<T> {
  const inDatabase: PodClient['inDatabase'] = (target, inner) => inSession({ at }, target, inner);
  try {
    return await inSession({ at }, {}, (session) => work({ session, inDatabase }));
  } catch (error) {
    throw toDriverError(error as Error);
  }
}

/** The certificate that the server has shown, DER. */
export function podCertificateOf({ session }: PodClient): Buffer {
  const { connection } = session as Session & { connection: { stream: TLSSocket } };
  return connection.stream.getPeerCertificate().raw;
}

/** Such as 15.8. */
export async function podVersionOf({ session }: PodClient): Promise<string> {
  const { rows } = await session.query<{ version: string }>("select current_setting('server_version') as version");
  return rows[0]?.version.split(' ')[0] ?? 'unknown';
}

/** Read-only. */
export async function inspect(
  engine: PodEngine,
  server: DatabaseServer,
  notes: ServerNotes,
  { session }: PodClient,
): Promise<ServerState> {
  const { used, isReadOnly } = await storageOf(session);
  const isApplied = (await notes.readNote<string>(APPLIED)) === appliedDigestOf(server);
  const diff = [
    isApplied ? null : 'it has other settings or users',
    isReadOnly === isOverStorage(engine, server, used, isReadOnly) ? null : 'the limit of its storage',
  ].filter((one) => one !== null);
  return {
    differs: diff.length > 0 ? diff.join(', ') : null,
    ...{ storageUsedBytes: used, full: isReadOnly, lagSeconds: null },
  };
}

/**
 * `change`: the kubelet may have replaced the files of the certificate by now. `others`: roles that are not of the
 * platform.
 */
export async function configure(
  engine: PodEngine,
  server: DatabaseServer,
  notes: ServerNotes,
  change: 'certificate' | null,
  client: PodClient,
  others: readonly string[] = [],
): Promise<void> {
  const { session } = client;
  if (change === 'certificate') await session.query('select pg_reload_conf()');
  const { used, isReadOnly } = await storageOf(session);
  const shouldBe = isOverStorage(engine, server, used, isReadOnly);
  if (shouldBe !== isReadOnly) await setReadOnly(session, shouldBe);
  const desired = appliedDigestOf(server);
  if ((await notes.readNote<string>(APPLIED)) === desired) return;
  await ensureContent(server, client, others);
  await notes.writeNote(APPLIED, desired);
}

/** Users, database and privileges. Who connects from where, the cluster decides. */
export async function ensureContent(
  server: DatabaseServer,
  { session, inDatabase }: PodClient,
  others: readonly string[] = [],
): Promise<void> {
  const spec = { ...server, allowed_sources: ['0.0.0.0/0', '::/0'] };
  await ensureUsers(session, spec, others);
  const { database_name: database } = spec;
  if (database === null) return;
  await inDatabase({ database }, (inside) =>
    ensureRights(inside, spec, (other, settings, work) => inDatabase({ database: other, settings }, work), others),
  );
}

/** Of the control group of the container; null where it does not say it. */
export async function metricsOf({ session }: PodClient): Promise<ServerMetrics> {
  const { rows } = await session.query<{ memory: string | null; cpu: string | null }>(
    `select coalesce(pg_read_file($1, 0, 4096, true), pg_read_file($2, 0, 4096, true)) as memory,
      coalesce(substring(pg_read_file($3, 0, 4096, true) from 'usage_usec (\\d+)') || '000',
        pg_read_file($4, 0, 4096, true)) as cpu`,
    ['memory.current', 'memory/memory.usage_in_bytes', 'cpu.stat', 'cpuacct/cpuacct.usage'].map(
      (file) => `/sys/fs/cgroup/${file}`,
    ),
  );
  const [{ memory, cpu } = { memory: null, cpu: null }] = rows;
  return {
    ...(await countersOf(session)),
    memory_bytes: memory === null ? null : Number(memory),
    cpu_seconds: cpu === null ? null : Number(cpu) / 1e9,
  };
}

/** Bytes with the write-ahead log, and whether the platform has closed it for writes. */
async function storageOf(session: Session): Promise<{ used: number; isReadOnly: boolean }> {
  const { rows } = await session.query<{ used: string; is_read_only: boolean }>(
    `select pg_tablespace_size('pg_default') + pg_tablespace_size('pg_global')
        + (select coalesce(sum(size), 0) from pg_ls_waldir()) as used,
      coalesce((select setting from pg_file_settings where name = $1 order by seqno desc limit 1), 'off') = 'on'
        as is_read_only`,
    [READ_ONLY],
  );
  return { used: Number(rows[0]?.used), isReadOnly: rows[0]?.is_read_only === true };
}

function isOverStorage(
  { gigabyteBytes }: PodEngine,
  { storage_gb }: DatabaseServer,
  used: number,
  isReadOnly: boolean,
): boolean {
  return stageFor(used / (storage_gb * gigabyteBytes), isReadOnly ? 'soft' : 'none') !== 'none';
}

/** Sessions may set it back for themselves, to delete data. */
async function setReadOnly(session: Session, isReadOnly: boolean): Promise<void> {
  await session.query(`alter system ${isReadOnly ? `set ${READ_ONLY} = on` : `reset ${READ_ONLY}`}`);
  await session.query('select pg_reload_conf()');
}

function toDriverError(error: Error): Error {
  if (error instanceof DriverError) return error;
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  if (isUnavailable(error) || AWAY.has(code) || TLS_FAILURE.test(code))
    return Object.assign(new NotReady(), { cause: error });
  if (REJECTED.has(code))
    return new DriverError('conflict', 'The server rejects the credentials of the platform. Nothing was changed.');
  return error;
}
