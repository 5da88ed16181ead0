// What an installation of several machines serves beside applications, as loads: a CDN zone, pulls from the registry,
// and databases in pods of each engine, one of them with automatic failover.
import { execFileSync } from 'node:child_process';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestCluster } from '../../cluster/cluster';
import { installOperator } from '../../cluster/operator';
import { kubectl } from '../../cluster/kubectl';
import { waitFor } from '../wait_for';
import { hostOfCluster } from './cluster_settings';
import { addDisks, importImage, MARIADB_IMAGE } from './database_image';
import { openDatabaseLoad, type DatabaseLoad } from './database_loads';
import { visit, type FurtherLoad } from './machine_loads';
import { debianPostgresql, importPostgresql } from './postgresql_image';
import { openServiceWays, type ServiceWays } from './service_ways';
import type { ThreeMachines } from './three_machines';

const WITHIN_MS = 300_000;
const OBJECTS = 50;

const versionOf = (program: string): string =>
  /(\d+\.\d+)/.exec(execFileSync(program, ['--version']).toString())?.[1] ?? '';
const VERSIONS = { postgresql: debianPostgresql() ?? '', mariadb: '', redis: '' };

/** Images of the engines on all nodes, disks, and CloudNativePG. @returns settings of the installation */
export async function prepareEngines(cluster: TestCluster, storageClass: string): Promise<Record<string, string>> {
  VERSIONS.mariadb = /Ver [^,]*?(\d+\.\d+)/.exec(execFileSync('mariadbd', ['--version']).toString())?.[1] ?? '';
  VERSIONS.redis = versionOf('redis-server');
  const imageOf = (engine: string): string => `test.local/${engine}-${process.pid}:${VERSIONS.postgresql}.0`;
  await importPostgresql(cluster, imageOf('postgresql'), VERSIONS.postgresql);
  await importImage(cluster, imageOf('mariadb'), ...MARIADB_IMAGE);
  await importImage(cluster, imageOf('redis'), ['redis-server']);
  await addDisks(cluster, storageClass, { kind: 'shared', count: 8 });
  await installOperator(cluster);
  return {
    KUBERNETES_STORAGE_CLASS: storageClass,
    DATABASE_IMAGES: Object.entries(VERSIONS)
      .map(([engine, version]) => `${engine}:${version}=${imageOf(engine)}`)
      .join(','),
  };
}

export interface FurtherLoads {
  loads: readonly FurtherLoad[];
  databases: readonly DatabaseLoad[];
  ways: ServiceWays;
  /** Waits until all databases are as they should be. */
  settled(): Promise<void>;
  close(): void;
}

export async function openFurtherLoads(cluster: TestCluster, machines: ThreeMachines): Promise<FurtherLoads> {
  const ways = await openServiceWays(cluster);
  const parts = { cluster, installation: machines, ways };
  const of = (engine: keyof typeof VERSIONS): { engine: string; engine_version: string } => ({
    engine,
    engine_version: VERSIONS[engine],
  });
  const databases = await Promise.all([
    openDatabaseLoad(parts, 'postgresql-ha', { ...of('postgresql'), database_package: 'ha-1vcpu-1gb' }),
    openDatabaseLoad(parts, 'postgresql', of('postgresql')),
    openDatabaseLoad(parts, 'mariadb', of('mariadb')),
    openDatabaseLoad(parts, 'redis', of('redis')),
  ]);
  const cdn = await cdnLoad(cluster, machines);
  const isSettled = async (id: string): Promise<boolean> => {
    const { body } = await machines.call('GET', `/v2/databases/${id}`);
    return body.status === 'available' && body.status_reason === null;
  };
  return {
    ...{ databases, ways },
    loads: [...databases, cdn.load, pullLoad(machines)],
    async settled() {
      const columns = '{.items[*].status.readyInstances} {.items[*].status.phase}';
      const healthy = async (): Promise<boolean> => {
        const path = ['-o', `jsonpath=${columns}`];
        const found = await kubectl(cluster.kubeconfig, 'get', 'clusters.postgresql.cnpg.io', '-A', ...path);
        return found.trim() === '3 Cluster in healthy state';
      };
      await waitFor('three instances', healthy, WITHIN_MS);
      for (const { id, name } of databases) await waitFor(name, () => isSettled(id), WITHIN_MS);
    },
    close() {
      ways.close();
      cdn.close();
    },
  };
}

/** At each ingress, of objects that each keeps a copy of. */
async function cdnLoad(cluster: TestCluster, machines: ThreeMachines): Promise<{ load: FurtherLoad; close(): void }> {
  const origin = http.createServer((request, response) =>
    response.writeHead(200, { 'Cache-Control': 'max-age=30' }).end(`object at ${request.url}`),
  );
  const host = await hostOfCluster(cluster);
  await new Promise<void>((resolve) => origin.listen(0, host, resolve));
  const url = `http://${host}:${(origin.address() as AddressInfo).port}`;
  const made = await machines.call('POST', '/v2/cdn_zones', { body: { name: 'ledger', origin: { type: 'url', url } } });
  if (made.status !== 201) throw new Error(made.text);
  const { id, hostname } = made.body;
  const isActive = async (): Promise<boolean> =>
    (await machines.call('GET', `/v2/cdn_zones/${id}`)).body.status === 'active';
  await waitFor('the CDN zone', isActive, WITHIN_MS);
  let number = 0;
  return {
    load: {
      ...{ name: 'cdn', pauseMs: 50 },
      next: (atAny) => {
        const place = `/${(number += 1) % OBJECTS}`;
        return atAny(machines.endpoints.ingress, async (address) => {
          const body = await visit(address, hostname, place);
          if (body !== `object at ${place}`) throw new Error(body);
          return body;
        });
      },
    },
    close: () => void origin.close().closeAllConnections(),
  };
}

/** As a node pulls: a token from a process of the API, with which the registry gives the manifest. */
function pullLoad({ endpoints, distribution, access }: ThreeMachines): FurtherLoad {
  const basic = Buffer.from(`owner:${access.key}`).toString('base64');
  return {
    ...{ name: 'pulls', pauseMs: 200 },
    next: (atAny) =>
      atAny(endpoints.api, async (address) => {
        const within = { signal: AbortSignal.timeout(3_000) };
        const query = `service=${distribution.host}&scope=repository:bases/busybox:pull`;
        const token = await fetch(`http://${address}/registry/token?${query}`, {
          headers: { Authorization: `Basic ${basic}` },
          ...within,
        });
        if (token.status !== 200) throw new Error(`token ${token.status}`);
        const bearer = ((await token.json()) as { token: string }).token;
        const manifest = await fetch(`${distribution.url}/v2/bases/busybox/manifests/1`, {
          headers: { Authorization: `Bearer ${bearer}`, Accept: 'application/vnd.oci.image.manifest.v1+json, */*' },
          ...within,
        });
        if (manifest.status !== 200) throw new Error(`manifest ${manifest.status}`);
        return (await manifest.text()).slice(0, 20);
      }),
  };
}
