// MariaDB in pods of a cluster: the same configuration, users and limits as on a host (reconcile.ts), over a tunnel to
// the pod, which verifies its certificate before it passes on what proves a password.
import type { ProgramFound } from '../../../core/catalog/host_facts';
import { asDriverErrors } from '../../../core/driver';
import { serverOf, type EngineDriver } from '../../database';
import { mayBegin, podContext, podEngine, type PodEngineOptions, type PodSteps } from '../kubernetes/pod_engine';
import type { ServerNotes } from '../server_notes';
import { withServer, type Query } from './connection';
import { mariadbMetrics } from './driver';
import { backup, restore } from './pod_backups';
import { accessOfPod, programOf, serverVersionOf, type MariadbPods } from './pod_server';
import { databaseOf } from './privileges';
import { ensureContent, inspectServer, type ServerStore } from './reconcile';
import { ensureTimeZones } from './time_zones';

interface PodClient {
  query: Query;
  /** Of the server, DER. */
  certificate: Buffer;
}

/** Files of tables, which are all that the server has but for its logs. In bytes. */
const INNODB_BYTES = 'SELECT SUM(ALLOCATED_SIZE) AS bytes FROM information_schema.INNODB_SYS_TABLESPACES';
const OTHERS = `information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE <> 'VIEW' AND ENGINE <> 'InnoDB'`;
/** Reads definitions of tables alone: their sizes would open each of them. */
const HAS_OTHERS = `SELECT 1 FROM ${OTHERS} LIMIT 1`;
const OTHER_BYTES = `SELECT SUM(DATA_LENGTH + INDEX_LENGTH) AS bytes FROM ${OTHERS}`;

/**
 * `tools`: programs of this host for dumps; null: it has none.
 * @throws never: a cluster that is away is waited for by each call
 */
export function openMariadbPods(
  options: PodEngineOptions & { tools(): Promise<ProgramFound | null> },
): EngineDriver & { close(): void } {
  const engine = { ...podContext('mariadb', options), tools: options.tools };
  return {
    ...podEngine(engine, stepsOf(engine)),
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
  };
}

function stepsOf(engine: MariadbPods): PodSteps<PodClient> {
  return {
    requireValid: (server) => void databaseOf(server),
    program: (server, claim, image, present) => programOf(server, { claim, image, isFirst: mayBegin(present, claim) }),
    withServer: (server, found, work, ctx) => {
      let certificate: Buffer = Buffer.alloc(0);
      const access = accessOfPod(engine, server, found, (one) => (certificate = one), ctx);
      return withServer(access, server, (query) => work({ query, certificate }), ctx);
    },
    servedCertificate: (_server, _found, { certificate }) => Promise.resolve(certificate),
    version: ({ query }) => serverVersionOf(query),
    inspect: (server, notes, { query }) =>
      inspectServer(engine, storeOf(notes, server.database_name, query), server, query),
    configure: async (server, notes, change, { query }) => {
      if (change === 'certificate') await query('FLUSH SSL');
      await ensureContent(engine, storeOf(notes, server.database_name, query), server, query);
      const tools = await engine.tools();
      if (tools !== null) await ensureTimeZones(notes, tools, query);
    },
    metrics: ({ query }, usage) => mariadbMetrics(query, usage),
  };
}

export function storeOf(notes: ServerNotes, database: string | null, query: Query): ServerStore {
  const bytesOf = async (statement: string, values: string[] = []): Promise<number> =>
    Number((await query(statement, values))[0]?.bytes ?? 0);
  return {
    ...notes,
    accountHost: '%',
    usedBytes: async () => {
      const innodb = await bytesOf(INNODB_BYTES);
      const name = database ?? '';
      return (await query(HAS_OTHERS, [name])).length === 0 ? innodb : innodb + (await bytesOf(OTHER_BYTES, [name]));
    },
  };
}
