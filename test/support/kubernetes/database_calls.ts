// Databases in pods as tests call them: over HTTP, and with kubectl.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { kubectl } from '../../cluster/kubectl';
import type { ClusterOfMachine } from '../../cluster/cluster';
import type { DeployService } from '../deployments/deploy';
import { waitFor } from '../wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 120_000;
const LABEL = 'platform-api/database';

export interface DatabaseCalls {
  run(...args: string[]): Promise<string>;
  get(place: string): Promise<any>;
  post(place: string, body?: object): Promise<any>;
  /** @returns its id */
  create(body: object): Promise<string>;
  settled(id: string, status?: string): Promise<any>;
  /** Waits until the place has this status. */
  reaches(place: string, status: string): Promise<any>;
  /** @returns the id of a backup that is complete */
  backUp(id: string): Promise<string>;
  podOf(id: string): Promise<{ ip: string; uid: string }>;
  namespaceOf(id: string): Promise<string>;
  /** Names of objects. */
  objects(kinds: string, id: string): Promise<string[]>;
  /** Has the jobs of all databases run now. */
  wake(): Promise<unknown>;
  /** Removes all, and waits until the cluster has nothing of them. */
  removeAll(): Promise<void>;
}

export function databaseCalls(
  service: () => Pick<DeployService, 'call' | 'sql'>,
  cluster: () => ClusterOfMachine,
): DatabaseCalls {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const selector = (id: string): string[] => ['-A', '-l', `${LABEL}=${id}`];
  const jsonpath = async (kind: string, id: string, paths: string): Promise<string> =>
    (await run('get', kind, ...selector(id), '-o', `jsonpath=${paths}`)).trim();
  const calls: DatabaseCalls = {
    run,
    get: async (place) => (await service().call('GET', `/v2/databases/${place}`)).body,
    post: async (place, body = {}) => service().call('POST', `/v2/databases/${place}`, { body }),
    async create(body) {
      const made = await service().call('POST', '/v2/databases', { body });
      expect([made.status, made.body.detail]).toEqual([201, undefined]);
      return made.body.id;
    },
    settled: (id, status = 'available') => calls.reaches(id, status),
    reaches: (place, status) =>
      waitFor(
        `${status} of ${place}`,
        async () => {
          const found = await calls.get(place);
          return found.status === status && found;
        },
        WITHIN_MS,
      ),
    async backUp(id) {
      const { body } = await calls.post(`${id}/backups`);
      expect((await calls.reaches(`${id}/backups/${body.id}`, 'completed')).status_reason).toBeNull();
      return body.id;
    },
    async podOf(id) {
      const [ip = '', uid = ''] = (await jsonpath('pods', id, '{..status.podIP} {..metadata.uid}')).split(' ');
      return { ip, uid };
    },
    namespaceOf: (id) => jsonpath('sts', id, '{..metadata.namespace}'),
    objects: async (kinds, id) =>
      (await run('get', kinds, ...selector(id), '-o', 'name')).split('\n').filter((one) => one !== ''),
    wake: () => service().sql('update databases set next_at = now()'),
    async removeAll() {
      for (const table of ['applications', 'databases'])
        for (const { id } of await service().sql<{ id: string }>(`select id from ${table} where deleted_at is null`))
          expect((await service().call('DELETE', `/v2/${table}/${id}`)).text).toBe('');
      for (const { id, project_id: project } of await service().sql<{ id: string; project_id: string }>(
        'select id, project_id from deleted_resources',
      ))
        expect((await service().call('DELETE', `/v2/bin/${id}`, { project })).text).toBe('');
      await waitFor(
        'a cluster without databases',
        async () => (await run('get', 'pvc,sts,svc,secret,pods', '-A', '-l', LABEL, '-o', 'name')) === '',
        WITHIN_MS,
      );
    },
  };
  return calls;
}

/** Runs statements in a database of MariaDB, with the client of the engine. */
export interface MariadbClient {
  /** `login`: default: that of the database. @throws with what it says */
  ask(id: string, statements: string, login?: { username: string; password: string }): Promise<string>;
  /** Waits for the answer. */
  answers(id: string, statement: string, expected: string): Promise<unknown>;
}

/** @param url of the service */
export function mariadbClient(calls: DatabaseCalls, url: () => string): MariadbClient {
  const addresses = new Map<string, string>();
  const client: MariadbClient = {
    async ask(id, statements, login) {
      const credentials = await calls.get(`${id}/credentials`);
      const { username, password } = login ?? credentials;
      // While the API server is away, it is where it was.
      const { ip } = await calls.podOf(id).catch(() => ({ ip: addresses.get(id) ?? '' }));
      if (ip === '') throw new Error('no pod');
      addresses.set(id, ip);
      const directory = mkdtempSync(path.join(tmpdir(), 'mariadb-client-'));
      const authority = path.join(directory, 'ca.pem');
      writeFileSync(authority, await (await fetch(`${url()}/databases/ca.pem`)).text());
      const place = ['-h', ip, '-P', String(credentials.endpoints[0].port), `--ssl-ca=${authority}`];
      const words = [...place, '-u', username, '-BN', '-e', statements, credentials.database_name];
      const run = promisify(execFile)('mariadb', words, { env: { ...process.env, MYSQL_PWD: password } });
      return (await run.finally(() => rmSync(directory, { recursive: true }))).stdout.trim();
    },
    async answers(id, statement, expected) {
      let last = '';
      const isThere = async (): Promise<boolean> => {
        last = await client.ask(id, statement).catch((error: Error) => error.message);
        return last === expected;
      };
      await waitFor(`${expected} from ${statement}`, isThere, WITHIN_MS).catch((error: Error) => {
        throw new Error(`${error.message}; the last answer: ${last}`);
      });
    },
  };
  return client;
}
