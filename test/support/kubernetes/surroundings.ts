// What an installation on a cluster has elsewhere: PostgreSQL, the registry, the file store, a receiver of mail and a
// Git server, all of which its machines and pods reach.
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import pg from 'pg';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { createTestDatabase } from '../databases/database';
import { startMailReceiver, type MailReceiver } from '../email/mail_receiver';
import { startGitServer, type GitServer } from '../git/git_server';
import { openFileStoreTrial } from '../object_storage/file_store';
import { freePort } from '../processes/free_port';
import { openRelay, type Relay } from '../processes/relay';
import { openDistribution, type Distribution } from '../registries/distribution';
import { hostOfCluster, trustRegistry } from './cluster_settings';

export interface Surroundings {
  git: GitServer;
  distribution: Distribution;
  receiver: MailReceiver;
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Of all processes of the installation. */
  settings: Record<string, string>;
  /** @param certificate path of the file with which it verifies tokens */
  startDistribution(certificate: string): Promise<void>;
  close(): Promise<void>;
}

/** @param apis URLs of the processes of the API at the moment, which issue the tokens of the registry */
export async function openSurroundings(
  cluster: ClusterOfMachine,
  apis: () => readonly string[],
): Promise<Surroundings> {
  const host = await hostOfCluster(cluster);
  const database = await createTestDatabase();
  const [git, store] = [await startGitServer({ host }), await openFileStoreTrial('embedded')];
  const [distribution, receiver] = [await openDistribution(host), await startMailReceiver({ host })];
  trustRegistry(cluster, distribution.host);
  const relays: Relay[] = [];
  const reached = async (targets: () => readonly string[]): Promise<string> => {
    const relay = await openRelay(host, targets);
    relays.push(relay);
    return `${host}:${relay.port}`;
  };
  const url = new URL(database.url);
  const socket = socketOf(url);
  const server = await reached(() => [socket]);
  url.search = '';
  const databaseUrl = Object.assign(url, { host: server }).href;
  const files = await reached(() => [store.faults.url]);
  const tokens = await reached(apis);
  const pool = new pg.Pool({ connectionString: database.url, max: 3 });
  return {
    ...{ git, distribution, receiver },
    sql: async (text, values) => (await pool.query(text, values)).rows,
    settings: {
      ...{ DATABASE_URL: databaseUrl, PLATFORM_SECRET_KEY: randomBytes(32).toString('base64') },
      KUBERNETES_NAMESPACE_PREFIX: `test-${process.pid}-${await freePort()}`,
      ...{ ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' },
      ...{ RATE_LIMIT_READ: '100000', RATE_LIMIT_WRITE: '100000', RATE_LIMIT_DEPLOY: '100000' },
      ...{ DISTRIBUTION_URL: distribution.url, DISTRIBUTION_EVENTS_KEY: distribution.eventsKey },
      ...{ REGISTRY_HOST: distribution.host, REGISTRY_URL_FOR_NODES: distribution.url },
      RELEASE_BASE_IMAGE: `${distribution.host}/bases/busybox:1`,
      ...{ ...store.settings, FILE_STORE_URL: `http://${files}`, SMTP_URL: `smtp://${host}:${receiver.port}` },
    },
    startDistribution: (certificate) =>
      distribution.start({ port: Number(tokens.split(':')[1]), path: '/registry', certificate }),
    async close() {
      for (const relay of relays) relay.close();
      await Promise.all([git.close(), store.close(), distribution.close(), receiver.close(), pool.end()]);
      await database.drop();
    },
  };
}

/** The server of the tests listens on a socket. */
function socketOf(url: URL): string {
  return path.join(url.searchParams.get('host') ?? '', `.s.PGSQL.${url.searchParams.get('port') ?? url.port}`);
}
