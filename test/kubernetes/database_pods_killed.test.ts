/** @tier heavy @quarter 4 @covers drivers/database/kubernetes drivers/database/redis jobs/databases */
// The control plane is killed with -9 while a database in a pod is made, backed up, restored and removed.
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { addDisks, importImage, removeDisks } from '../support/kubernetes/database_image';
import { startPlantOnCluster } from '../support/kubernetes/service_on_cluster';
import type { Plant } from '../support/processes/bad_days_program';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 120_000;
const KILLED_AFTER_MS = [0, 100, 400, 900, 1_600, 2_500];
const IMAGE = `test.local/redis-${process.pid}:1`;
const storageClass = `databases-${process.pid}`;

needs('redis-server').describe('with Redis', () =>
  describeOnClusterOfMachine('databases in pods whose control plane is killed', (cluster) => {
    let plant: Plant;
    const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
    const version = /v=(\d+\.\d+)/.exec(execFileSync('redis-server', ['--version']).toString())?.[1] ?? '7.0';
    beforeAll(async () => {
      await importImage(cluster(), IMAGE, ['redis-server']);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 6 });
      plant = await startPlantOnCluster(cluster(), {
        ...{ KUBERNETES_STORAGE_CLASS: storageClass, DATABASE_IMAGES: `redis:${version}=${IMAGE}` },
        RETENTION_OF_DELETED_DAYS: '0',
      });
    }, 180_000);
    afterAll(async () => {
      await plant?.close();
      await removeDisks(cluster(), storageClass);
    }, 120_000);

    const get = async (place: string): Promise<any> => (await plant.call('GET', `/v2/databases/${place}`)).body;
    const objects = async (kinds: string, id: string): Promise<string[]> =>
      (await run('get', kinds, '-A', '-l', `platform-api/database=${id}`, '-o', 'name')).split('\n').filter(Boolean);
    async function killing(): Promise<void> {
      for (const ms of KILLED_AFTER_MS) {
        await sleep(ms);
        await plant.kill();
        await plant.start();
      }
    }
    const reaches = (place: string, status: string): Promise<any> =>
      waitFor(
        `${status} of ${place}`,
        async () => {
          const found = await get(place);
          return found.status === status && found;
        },
        WITHIN_MS,
      );
    async function ask(id: string, ...words: string[]): Promise<unknown> {
      const { username, password, endpoints } = await get(`${id}/credentials`);
      const selector = ['-A', '-l', `platform-api/database=${id}`];
      const host = (await run('get', 'pods', ...selector, '-o', 'jsonpath={.items[0].status.podIP}')).trim();
      const ca = await (await fetch(`${plant.access().url}/databases/ca.pem`)).text();
      const socket = { host, port: 6379, tls: true as const, ca, servername: endpoints[0].host };
      const client = createClient({ username, password, disableClientInfo: true, socket });
      client.on('error', () => undefined);
      await client.connect();
      return client.sendCommand(words).finally(() => client.destroy());
    }

    test('each step goes on, nothing is twice, no data are lost, and nothing is left', async () => {
      const made = await plant.call('POST', '/v2/databases', { body: { name: 'main', engine: 'redis' } });
      expect(made.status).toBe(201);
      const { id } = made.body;
      await killing();
      await reaches(id, 'available');
      expect(await objects('sts,pods,pvc', id)).toHaveLength(3);
      for (let index = 0; index < 10; index += 1) await ask(id, 'SET', `key:${index}`, 'x'.repeat(100_000));

      const backup = (await plant.call('POST', `/v2/databases/${id}/backups`, { body: {} })).body;
      await killing();
      await reaches(`${id}/backups/${backup.id}`, 'completed');
      await ask(id, 'FLUSHALL');

      const begun = await plant.call('POST', `/v2/databases/${id}/restore`, { body: { backup_id: backup.id } });
      expect(begun.status).toBe(202);
      await killing();
      expect((await reaches(id, 'available')).status_reason).toBeNull();
      expect(await ask(id, 'DBSIZE')).toBe(10);
      await waitFor('one claim', async () => (await objects('sts,pods,pvc,jobs', id)).length === 3, WITHIN_MS);

      expect((await plant.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
      await killing();
      await waitFor('nothing', async () => (await objects('sts,pods,pvc,jobs,svc,secret', id)).length === 0, WITHIN_MS);
    }, 600_000);
  }),
);
