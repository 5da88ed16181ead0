/** @tier heavy @quarter 4 @covers drivers/database/kubernetes drivers/database/redis */
// Databases in pods on bad days: a machine that is lost, an API server that is away, restores.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { kubectl } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService } from '../support/deployments/deploy';
import { addDisks, importImage, removeDisks } from '../support/kubernetes/database_image';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 90_000;
/** 50 s until the cluster notices, 30 s of tolerance, and a poll. */
const LOST_MS = 200_000;
const IMAGE = `test.local/redis-${process.pid}:1`;
const LABEL = 'platform-api/database';
const storageClass = `databases-${process.pid}`;

const AWAY_MS = 20_000;

let service: DeployService;

needs('redis-server').describe('with Redis', () =>
  describeOnTestCluster('databases in pods on bad days', (cluster) => {
    const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
    const version = /v=(\d+\.\d+)/.exec(execFileSync('redis-server', ['--version']).toString())?.[1] ?? '7.0';
    let lost: number | null = null;
    const hosts = new Map<string, string>();
    beforeAll(async () => {
      await importImage(cluster(), IMAGE, ['redis-server']);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 6 });
      service = await startOnCluster(cluster(), {
        settings: {
          ...{ KUBERNETES_STORAGE_CLASS: storageClass, RETENTION_OF_DELETED_DAYS: '7' },
          DATABASE_IMAGES: `redis:${version}=${IMAGE}`,
        },
      });
    }, 120_000);
    /** Rows of databases stay for their backups. */
    async function removeAll(): Promise<void> {
      for (const { id } of await service.sql<{ id: string }>('select id from databases where deleted_at is null'))
        expect((await service.call('DELETE', `/v2/databases/${id}`)).text).toBe('');
      for (const { id, project_id: project } of await service.sql<{ id: string; project_id: string }>(
        'select id, project_id from deleted_resources',
      ))
        expect((await service.call('DELETE', `/v2/bin/${id}`, { project })).text).toBe('');
      await waitFor(
        'a cluster without databases',
        async () => (await run('get', 'pvc,sts,svc,secret,pods', '-A', '-l', LABEL, '-o', 'name')) === '',
        WITHIN_MS,
      );
    }
    afterAll(async () => {
      try {
        if (lost !== null) await cluster().startNode(lost);
        await removeAll();
      } finally {
        await service.close();
        await removeDisks(cluster(), storageClass);
      }
    }, 240_000);

    const databaseOf = async (id: string): Promise<any> => (await service.call('GET', `/v2/databases/${id}`)).body;
    const settled = (id: string): Promise<any> =>
      waitFor(
        'an available database',
        async () => {
          const database = await databaseOf(id);
          return database.status === 'available' && database;
        },
        WITHIN_MS,
      );
    async function create(name: string, more: object = {}): Promise<string> {
      const { status, body } = await service.call('POST', '/v2/databases', {
        body: { name, engine: 'redis', ...more },
      });
      expect([status, body.detail]).toEqual([201, undefined]);
      await settled(body.id);
      return body.id;
    }
    async function ask(id: string, ...words: string[]): Promise<unknown> {
      const { body } = await service.call('GET', `/v2/databases/${id}/credentials`);
      const { username, password } = body;
      const selector = ['-A', '-l', `platform-api/database=${id}`, '--field-selector=status.phase=Running'];
      const found = await run('get', 'pods', ...selector, '-o', 'jsonpath={.items[0].status.podIP}').catch(() => '');
      // While the API server is away, it is where it was.
      const host = found.trim() || (hosts.get(id) ?? '');
      hosts.set(id, host);
      const ca = await (await fetch(`${service.url}/databases/ca.pem`)).text();
      const client = createClient({
        ...{ username, password, disableClientInfo: true },
        socket: {
          ...{ host, port: 6379, tls: true, ca, servername: body.endpoints[0].host, connectTimeout: 2_000 },
          reconnectStrategy: false,
        },
      });
      client.on('error', () => undefined);
      try {
        await client.connect();
        return await client.sendCommand(words);
      } finally {
        if (client.isOpen) client.destroy();
      }
    }
    const soon = async (): Promise<unknown> => service.sql('update databases set next_at = now()');

    test('a backup is restored in place and into another database, and a damaged one changes nothing', async () => {
      const id = await create('origin');
      for (let index = 0; index < 20; index += 1) await ask(id, 'SET', `key:${index}`, `${index}`.repeat(20_000));
      const { body } = await service.call('POST', `/v2/databases/${id}/backups`, { body: {} });
      const backup = await waitFor(
        'the backup',
        async () => {
          const found = (await service.call('GET', `/v2/databases/${id}/backups/${body.id}`)).body;
          return found.status === 'completed' && found;
        },
        WITHIN_MS,
      );
      await ask(id, 'FLUSHALL');
      await ask(id, 'SET', 'later', '1');
      const begun = await service.call('POST', `/v2/databases/${id}/restore`, { body: { backup_id: backup.id } });
      expect(begun.status).toBe(202);
      expect((await settled(id)).status_reason).toBeNull();
      expect([await ask(id, 'DBSIZE'), await ask(id, 'GET', 'key:19')]).toEqual([20, '19'.repeat(20_000)]);
      const selector = ['-A', '-l', `platform-api/database=${id}`];
      expect((await run('get', 'pvc', ...selector, '-o', 'name')).trim().split('\n')).toHaveLength(1);
      expect(await run('get', 'jobs', ...selector, '-o', 'name')).toBe('');
      await run('delete', 'pod', ...selector.slice(1), '-n', await namespace(id));
      await waitFor('data', async () => (await ask(id, 'DBSIZE').catch(() => 0)) === 20, WITHIN_MS);

      const copy = await create('copy', { restore_from: { database_id: id, backup_id: backup.id } });
      expect(await ask(copy, 'DBSIZE')).toBe(20);
      await ask(id, 'SET', 'later', '1');
      await isDamagedOneRefused(id, backup.id);
    }, 300_000);

    async function isDamagedOneRefused(id: string, backup: string): Promise<void> {
      const file = path.join(service.platform.config.databaseDir, 'backups', id, backup, 'dump.rdb');
      const bytes = readFileSync(file);
      const middle = bytes.length >> 1;
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 0xff, middle);
      writeFileSync(file, bytes);
      await service.call('POST', `/v2/databases/${id}/restore`, { body: { backup_id: backup } });
      const reason = /^The restore failed\. The server did not start with the new data\..* The data are as before\.$/;
      expect((await settled(id)).status_reason).toMatch(reason);
      await waitFor('the data', async () => (await ask(id, 'DBSIZE').catch(() => 0)) === 21, WITHIN_MS);
      await waitFor('the end of the job', async () => isAsleep(id), WITHIN_MS);
      expect(await databaseOf(id)).toMatchObject({ status: 'available', status_reason: expect.stringMatching(reason) });
      const objects = await run('get', 'pvc,jobs', '-A', '-l', `${LABEL}=${id}`, '-o', 'name');
      expect(objects.trim().split('\n')).toEqual([expect.stringMatching(/^persistentvolumeclaim/)]);
    }

    async function isAsleep(id: string): Promise<boolean> {
      const asleep = `id = $1 and next_at > now() + interval '5 seconds' and lease_until is null`;
      return (await service.sql(`select 1 from databases where ${asleep}`, [id])).length > 0;
    }

    const namespace = async (id: string): Promise<string> =>
      (
        await run('get', 'sts', '-A', '-l', `platform-api/database=${id}`, '-o', 'jsonpath={..metadata.namespace}')
      ).trim();

    test('while the API server is away the database answers, and afterwards all is as before', async () => {
      const id = await create('steady');
      await ask(id, 'SET', 'kept', 'yes');
      await cluster().stopApiServer();
      try {
        await soon();
        await sleep(AWAY_MS);
        expect((await databaseOf(id)).status).toBe('available');
        expect(await ask(id, 'GET', 'kept')).toBe('yes');
      } finally {
        await cluster().startApiServer();
      }
      await soon();
      await waitFor(
        'no reason',
        async () => {
          const { status, status_reason } = await databaseOf(id);
          return status === 'available' && status_reason === null && (await ask(id, 'GET', 'kept')) === 'yes';
        },
        WITHIN_MS,
      );
    }, 240_000);

    test('a lost machine is told, and costs a restart elsewhere once an operator says that it is off', async () => {
      const id = await create('moved');
      await ask(id, 'SET', 'kept', 'yes');
      await ask(id, 'WAITAOF', '1', '0', '2000').catch(() => undefined);
      const selector = ['-A', '-l', `platform-api/database=${id}`];
      const node = await run('get', 'pods', ...selector, '-o', 'jsonpath={..spec.nodeName}');
      lost = Number(node.trim().replace('node', ''));
      await cluster().killNode(lost);
      const killedAt = performance.now();
      await waitFor(
        'the reason',
        async () => {
          await soon();
          return /does not respond.*kubectl delete node/.test((await databaseOf(id)).status_reason ?? '');
        },
        LOST_MS,
      );
      const toldMs = performance.now() - killedAt;
      await run('delete', 'node', node.trim());
      const deletedAt = performance.now();
      await waitFor('its data', async () => (await ask(id, 'GET', 'kept').catch(() => null)) === 'yes', LOST_MS);
      const backMs = performance.now() - deletedAt;
      await soon();
      await waitFor('no reason', async () => (await databaseOf(id)).status_reason === null, WITHIN_MS);
      console.info(`told after ${Math.round(toldMs)} ms, back ${Math.round(backMs)} ms after the node was deleted`);
    }, 500_000);
  }),
);
