// PostgreSQL in pods of a cluster: users, databases, extensions and limits as on a host, over the address of the pod.
import type { PostgresqlFound } from '../../../../core/catalog/host_facts';
import { asDriverErrors, type Desired, type DriverContext } from '../../../../core/driver';
import { serverOf, type EngineDriver, type ServerSpec } from '../../../database';
import type { RuntimeDriver } from '../../../runtime';
import { mayBegin, podContext, podEngine, type PodEngineOptions, type PodSteps } from '../../kubernetes/pod_engine';
import { openBackup, removeBackup } from '../backups/backups';
import { postgresqlContext } from '../cluster';
import { availableExtensions, changeExtensions, EXTENSION_MS, EXTENSION_SETTINGS } from '../extensions';
import { ensureFailover, hasFailover, observeFailover } from '../failover/driver';
import { serverLines } from '../failover/log';
import { visibleLines } from '../log';
import { sessionUserUse } from '../second_logins';
import { backup, cancelRestore, locatePrimary, restore, type PostgresqlPods } from './backups';
import { programOf } from './program';
import {
  podAddressOf,
  podCertificateOf,
  configure,
  inspect,
  metricsOf,
  podVersionOf,
  withPod,
  type PodClient,
} from './server';

export interface PostgresqlPodOptions extends PodEngineOptions {
  /** Programs of this host: those of backups, of the version of a server or a newer one. */
  found: PostgresqlFound[];
  runtime: RuntimeDriver;
}

/** @throws never: a cluster that is away is waited for by each call */
export function openPostgresqlPods(options: PostgresqlPodOptions): EngineDriver & { close(): void } {
  const { directory, store, found, runtime, gigabyteBytes } = options;
  const host = postgresqlContext({ runtime, directory, found, store, gigabyteBytes });
  const pods = podContext('postgresql', options);
  const engine: PostgresqlPods = { ...pods, host };
  const common = podEngine(pods, stepsOf(engine));
  return {
    ...common,
    ...serverSteps(engine, common),
    ...databaseSteps(engine),
    stop: async (id, ctx) => {
      await cancelRestore(engine, id, ctx);
      await common.stop(id, ctx);
    },
    forget: async (id, ctx) => {
      await cancelRestore(engine, id, ctx);
      await common.forget(id, ctx);
    },
    readLog: async (id, position) => {
      const chunk = await common.readLog(id, position);
      return { ...chunk, lines: visibleLines(chunk.lines.flatMap(serverLines)) };
    },
    backup: (r, backupId, ctx) => asDriverErrors(() => backup(engine, serverOf(r), backupId, ctx)),
    removeBackup: (serverId, backupId, ctx) => asDriverErrors(() => removeBackup(host, serverId, backupId, ctx)),
    openBackup: (serverId, backupId, from) => asDriverErrors(() => openBackup(host, serverId, backupId, from)),
    restore: (r, from, ctx) => asDriverErrors(() => restore(engine, serverOf(r), from, ctx)),
  };
}

/** Of a server in one pod, or of one with automatic failover. */
function serverSteps(
  engine: PostgresqlPods,
  common: Pick<EngineDriver, 'observe' | 'ensure'>,
): Pick<EngineDriver, 'observe' | 'ensure' | 'metrics'> {
  return {
    observe: (r, ctx) =>
      hasFailover(r.spec) ? asDriverErrors(() => observeFailover(engine, r, ctx)) : common.observe(r, ctx),
    ensure: (r, seen, ctx) =>
      hasFailover(r.spec) ? asDriverErrors(() => ensureFailover(engine, r, ctx)) : common.ensure(r, seen, ctx),
    metrics: (r, ctx) => asDriverErrors(async () => withPod(await locatePrimary(engine, serverOf(r), ctx), metricsOf)),
  };
}

function stepsOf(engine: PostgresqlPods): PodSteps<PodClient> {
  return {
    program: (server, claim, image, present) =>
      programOf(engine, server, { claim, image, isNew: mayBegin(present, claim) }),
    withServer: (server, found, work) => withPod(podAddressOf(engine, server, found), work),
    servedCertificate: (_server, _found, client) => Promise.resolve(podCertificateOf(client)),
    version: podVersionOf,
    inspect: (server, notes, client) => inspect(engine, server, notes, client),
    configure: (server, notes, change, client) => configure(engine, server, notes, change, client),
    metrics: metricsOf,
  };
}

function databaseSteps(
  engine: PostgresqlPods,
): Pick<EngineDriver, 'secondLoginDiffers' | 'changeExtensions' | 'availableExtensions'> {
  const inPod = async <T>(
    r: Desired<ServerSpec>,
    work: (client: PodClient, database: string | null) => Promise<T>,
    ctx: DriverContext,
  ): Promise<T> => {
    const server = serverOf(r);
    return withPod(await locatePrimary(engine, server, ctx), (client) => work(client, server.database_name));
  };
  return {
    secondLoginDiffers: (r, ctx) =>
      asDriverErrors(() =>
        inPod(
          r,
          async ({ inDatabase }, database) => (database === null ? null : inDatabase({ database }, sessionUserUse)),
          ctx,
        ),
      ),
    availableExtensions: (r, ctx) => asDriverErrors(() => inPod(r, ({ session }) => availableExtensions(session), ctx)),
    changeExtensions: (r, changes, ctx) =>
      asDriverErrors(() =>
        inPod(
          r,
          ({ inDatabase }, database) => {
            const target = { statementMs: EXTENSION_MS, settings: EXTENSION_SETTINGS };
            return inDatabase({ ...target, database: database ?? 'postgres' }, (session) =>
              changeExtensions(session, changes),
            );
          },
          ctx,
        ),
      ),
  };
}
