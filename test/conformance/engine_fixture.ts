// A fixture of the suite for a database engine: files, units and processes of its servers, rows or keys that must
// survive.
import { chmodSync, mkdtempSync } from 'node:fs';
import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineId, ObservedServer, ServerSpec } from '../../drivers/database';
import type { Desired } from '../../core/driver';
import { claimPorts } from '../support/processes/claimed_ports';
import { newCertificate } from '../support/databases/database_server';
import { isHeavyRun } from '../support/processes/kills';
import { processesWith, signalAll } from '../support/processes/processes';
import { openEngine } from './engines';
import type { ResourceFixture } from './resource_driver';

/** What a client of the engine puts into a server, and finds there again. */
interface EngineClient {
  write(server: Desired<ServerSpec>): Promise<void>;
  check(server: Desired<ServerSpec>): Promise<void>;
}

/** `program`: of the server, as it stands in the list of processes. */
interface EngineUnderTest {
  engine: EngineId;
  program: RegExp;
  database_name: string | null;
  client: EngineClient;
  network?: string;
}

/** Names of suites and networks: as root one of their own, and in the heavy tier that of the host too. */
export function placesForSuite(engine: EngineId): [name: string, network: string | undefined][] {
  const own: [string, string] = [`${engine} in a network of its own`, 'prj_suite'];
  if (process.getuid?.() !== 0) return [[engine, undefined]];
  return runsAtTwoPlaces() ? [[engine, undefined], own] : [own];
}

const runsAtTwoPlaces = (): boolean => process.getuid?.() === 0 && isHeavyRun();

export async function makeEngineFixture(under: EngineUnderTest): Promise<ResourceFixture<ServerSpec, ObservedServer>> {
  const directory = mkdtempSync(path.join(os.tmpdir(), `${under.engine}-`));
  chmodSync(directory, 0o711);
  const ports = await claimPorts();
  const options = {
    engine: under.engine,
    directory,
    firstPort: ports.first,
    ports: ports.count,
    network: under.network,
  };
  const driver = openEngine(options);
  const servers = path.join(directory, 'servers');
  await mkdir(servers, { mode: 0o711 });
  await driver.runtime();
  const [version = ''] = await driver.versions();
  const spec = specFor(under, version);
  const processes = () =>
    processesWith(`${servers}/`)
      .filter(({ args }) => under.program.test(args))
      .map(({ pid }) => pid);
  return {
    driver,
    spec,
    changed: { ...spec, size: { ...spec.size, max_connections: 30 }, tls: newCertificate() },
    recipe: { module: 'test/conformance/engines.ts', factory: 'openEngine', options },
    snapshot: async () => ({
      files: await ourFilesOf(servers),
      units: await unitsOf(path.join(directory, 'units')),
      processes: processes().length,
    }),
    use: (_observed, r) => under.client.write(driver.placed(r)),
    check: async (_observed, r) => {
      // The one that was killed may have made its network anew; ports of the host lead there since the next one starts.
      if (under.network !== undefined) await driver.reopen();
      await under.client.check(driver.placed(r));
    },
    drifts: {
      'its process was killed': async (id) => {
        signalAll(
          processesWith(`${path.join(servers, id)}/`).flatMap(({ pid, args }) =>
            under.program.test(args) ? [pid] : [],
          ),
        );
        await ended(path.join(servers, id));
      },
    },
    // The steps of both places are the same.
    kills: runsAtTwoPlaces() && under.network === undefined ? { sample: 1, random: 0 } : { sample: 4, random: 2 },
    slow: true,
    plantForeign: (id) => writeFile(path.join(servers, id), 'not yours'),
    uprootForeign: (id) => rm(path.join(servers, id)),
    close: async () => {
      expect([processes(), await (await driver.runtime()).list()]).toEqual([[], []]);
      await driver.closed();
      await ports.release();
      await rm(directory, { recursive: true });
    },
  };
}

function specFor({ engine, database_name, network }: EngineUnderTest, version: string): ServerSpec {
  return {
    engine,
    version,
    tenant: 6,
    network,
    port: 0,
    size: { memory_mb: 256, cpus: 1, max_connections: 20 },
    storage_gb: 1,
    running: true,
    database_name,
    admin_password: 'administrators-word',
    users: [{ username: 'app', password: 'first-word', access: 'admin' }],
    allowed_sources: [],
    tls: newCertificate(),
    replica_of: null,
    archive: false,
  };
}

async function ended(place: string): Promise<void> {
  while (processesWith(`${place}/`).length) await sleep(20);
  await sleep(300);
}

// What a killed process tried the host with goes when the next one does.
async function unitsOf(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => !name.startsWith('.trial-')).sort();
}

// What the driver writes: notes and configuration. What the server itself does in its data is its own. Trials as above.
async function ourFilesOf(servers: string): Promise<unknown> {
  const names = (await readdir(servers, { recursive: true })).sort();
  const ours = names.filter((name) => !/^\.trial-|^[^/]+\/(data|disk|log|socket|archive|staging)\//.test(name));
  return Promise.all(
    ours.map(async (name) => {
      const { ino, mode, size, mtimeMs } = await lstat(path.join(servers, name));
      // The directories of the server change with what is in them.
      return /^[^/]+(\/(data|disk(\.ext4)?|log|socket|archive))?$/.test(name)
        ? [name, ino, mode]
        : [name, ino, mode, size, mtimeMs];
    }),
  );
}
