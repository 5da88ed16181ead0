// Drivers of database engines for the suite: in a runtime of their own, each resource at a port of its own.
import path from 'node:path';
import type { EngineDriver, EngineId, ObservedServer, ServerSpec } from '../../drivers/database';
import { openMariadb } from '../../drivers/database/mariadb/driver';
import { openPostgresql } from '../../drivers/database/postgresql/driver';
import { openRedis } from '../../drivers/database/redis/driver';
import { driverContext, type Desired, type ResourceDriver } from '../../core/driver';
import { hostFacts } from '../../drivers/host';
import type { RuntimeDriver } from '../../drivers/runtime';
import { openNetworks } from '../../drivers/network/open';
import { openLocalRuntime, type LocalRuntimeOptions } from '../../drivers/runtime/local';
import { memberOfNetwork } from '../../drivers/runtime/network_members';

const fingerprintWithinMs = 10_000;

interface EngineOptions {
  engine: EngineId;
  directory: string;
  /** Each resource has one of these, by the number in its id. */
  firstPort: number;
  ports: number;
  /** Their network is one of their own. */
  network?: string;
}

interface EngineForSuite extends ResourceDriver<ServerSpec, ObservedServer> {
  runtime(): Promise<RuntimeDriver>;
  /** The spec of a resource with its own port. */
  placed(r: Desired<ServerSpec>): Desired<ServerSpec>;
  /** Series of the engine on this host, newest first. */
  versions(): Promise<string[]>;
  closed(): Promise<void>;
  /** As a control plane that follows one that was killed. */
  reopen(): Promise<void>;
}

/** Opens its runtime with the first call; `closed` ends the watching of it. */
export function openEngine(options: EngineOptions): EngineForSuite {
  let networks: ReturnType<typeof networksOf> | undefined;
  let opened: Promise<RuntimeDriver> | undefined;
  let made: Promise<EngineDriver> | undefined;
  const runtime = () =>
    (opened ??= (networks ??= networksOf(options)).then((found) =>
      openLocalRuntime({
        directory: path.join(options.directory, 'units'),
        ports: [24_000, 24_001],
        sandbox: 'auto',
        tenantUidBase: 700_000,
        networks: found,
      }),
    ));
  const driver = () => (made ??= runtime().then((unitRuntime) => engineOf(options, unitRuntime)));
  const placed = (r: Desired<ServerSpec>): Desired<ServerSpec> => ({
    ...r,
    spec: { ...r.spec, port: options.firstPort + (Number(/\d+$/.exec(r.id)?.[0] ?? 0) % options.ports) },
  });
  const closed = async () => {
    await (await runtime()).close();
    await (await networks)?.driver.close();
  };
  return {
    name: options.engine,
    runtime,
    placed,
    async reopen() {
      await closed();
      networks = opened = made = undefined;
      await runtime();
    },
    versions: async () => (await driver()).versions(),
    closed,
    fingerprint: async (ctx) => (await driver()).fingerprint(ctx),
    observe: async (r, ctx) => (await driver()).observe(placed(r), ctx),
    ensure: async (r, obs, ctx) => (await driver()).ensure(placed(r), obs, ctx),
    remove: async (r, obs, ctx) => (await driver()).remove(placed(r), obs, ctx),
    async *list(ctx) {
      yield* (await driver()).list(ctx);
    },
  };
}

// Their suites run beside each other.
const BLOCKS: Record<EngineId, string> = {
  redis: '10.241.0.0/24',
  postgresql: '10.241.1.0/24',
  mariadb: '10.241.2.0/24',
  valkey: '10.241.3.0/24',
};

async function networksOf({ engine, directory, network }: EngineOptions): Promise<LocalRuntimeOptions['networks']> {
  if (network === undefined) return undefined;
  const options = {
    directory: path.join(directory, 'networks'),
    block: BLOCKS[engine],
    openings: { resolvers: [], loopbackResolver: null, services: [], databases: [1, 1] as const, allowed: [] },
    memberOf: (name: string) => memberOfNetwork(path.join(directory, 'units'), name),
  };
  return { driver: await openNetworks(options), isolated: 'required' };
}

async function engineOf({ engine, directory }: EngineOptions, runtime: RuntimeDriver): Promise<EngineDriver> {
  const facts = await hostFacts();
  const { disk_limit } = (await runtime.fingerprint(driverContext(fingerprintWithinMs))).facts;
  const options = { runtime, directory: path.join(directory, 'servers'), disks: disk_limit === 'hard' };
  if (engine === 'postgresql') return openPostgresql({ ...options, found: facts.postgresql });
  if (engine === 'mariadb') return openMariadb({ ...options, found: facts.mariadb });
  return openRedis({ ...options, engine, found: facts[engine] });
}
