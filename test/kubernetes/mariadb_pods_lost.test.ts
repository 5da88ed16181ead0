/** @tier heavy @quarter 2 @covers drivers/database/kubernetes drivers/database/mariadb */
// MariaDB in pods on bad days: what operators of other makers have lost.
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService } from '../support/deployments/deploy';
import { databaseCalls, mariadbClient } from '../support/kubernetes/database_calls';
import { addDisks, importImage, MARIADB_IMAGE, removeDisks } from '../support/kubernetes/database_image';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const AWAY_MS = 20_000;
const IMAGE = `test.local/mariadb-${process.pid}:1`;
const storageClass = `databases-${process.pid}`;

let service: DeployService;

needs('mariadbd').describe('with MariaDB', () =>
  describeOnTestCluster('MariaDB in pods on bad days', (cluster) => {
    const version = /Ver (\d+\.\d+)/.exec(execFileSync('mariadbd', ['--version']).toString())?.[1] ?? '10.11';
    const calls = databaseCalls(() => service, cluster);
    const { run, get, post, podOf, namespaceOf, settled, wake } = calls;
    const { ask, answers } = mariadbClient(calls, () => service.url);
    beforeAll(async () => {
      await importImage(cluster(), IMAGE, ...MARIADB_IMAGE);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 6 });
      service = await startOnCluster(cluster(), {
        settings: {
          ...{ KUBERNETES_STORAGE_CLASS: storageClass, RETENTION_OF_DELETED_DAYS: '7' },
          DATABASE_IMAGES: `mariadb:${version}=${IMAGE}`,
        },
      });
    }, 180_000);
    afterAll(async () => {
      try {
        await calls.removeAll();
      } finally {
        await service.close();
        await removeDisks(cluster(), storageClass);
      }
    }, 240_000);

    const create = (name: string): Promise<string> =>
      calls.create({ name, engine: 'mariadb', engine_version: version });
    const says = (id: string, reason: RegExp): Promise<unknown> =>
      waitFor(
        String(reason),
        async () => {
          await wake();
          return reason.test((await get(id)).status_reason ?? '');
        },
        WITHIN_MS,
      );
    const deletePod = async (id: string, ...more: string[]): Promise<unknown> =>
      run('delete', 'pod', '-n', await namespaceOf(id), '-l', `platform-api/database=${id}`, ...more);
    /** Directory of its disk on this machine. */
    async function diskOf(id: string): Promise<string> {
      const selector = ['-A', '-l', `platform-api/database=${id}`];
      const disk = await run('get', 'pvc', ...selector, '-o', 'jsonpath={.items[0].spec.volumeName}');
      return path.join(cluster().directory, 'disks', disk.trim());
    }

    test('a first start that is killed begins anew, and a kill of the server loses no row', async () => {
      const id = await create('first');
      await waitFor('its first data', async () => readdirSync(await diskOf(id)).includes('.setup'), WITHIN_MS).catch(
        () => undefined,
      );
      await deletePod(id, '--force', '--grace-period=0');
      expect((await settled(id)).status_reason).toBeNull();
      await ask(id, 'create table t (a int primary key)');
      await ask(id, 'insert into t select seq from seq_1_to_1000');
      await deletePod(id, '--force', '--grace-period=0');
      await answers(id, 'select count(*) from t', '1000');
      expect(readdirSync(await diskOf(id))).toEqual(['data']);
    }, 300_000);

    test('while the API server is away the database answers, and afterwards all is as before', async () => {
      const id = await create('steady');
      await settled(id);
      await ask(id, `create table kept (text varchar(9)); insert into kept values ('yes')`);
      await cluster().stopApiServer();
      try {
        await wake();
        await sleep(AWAY_MS);
        expect((await get(id)).status).toBe('available');
        expect(await ask(id, 'select text from kept')).toBe('yes');
      } finally {
        await cluster().startApiServer();
      }
      await waitFor(
        'no reason',
        async () => {
          await wake();
          const { status, status_reason } = await get(id);
          return status === 'available' && status_reason === null;
        },
        WITHIN_MS,
      );
    }, 240_000);

    test('a disk that has lost its data is told, no empty database takes their place, and a backup helps', async () => {
      const id = await create('emptied');
      await settled(id);
      await ask(id, `create table kept (text varchar(9)); insert into kept values ('yes')`);
      const backup = await calls.backUp(id);
      const disk = await diskOf(id);
      for (const name of readdirSync(disk)) rmSync(path.join(disk, name), { recursive: true });
      await deletePod(id, '--force', '--grace-period=0');
      await says(id, /The disk of the database has lost its data/);
      expect((await podOf(id)).uid).not.toBe('');
      expect(readdirSync(disk)).toEqual([]);
      expect((await post(`${id}/restore`, { backup_id: backup })).status).toBe(202);
      expect((await settled(id)).status_reason).toBeNull();
      await answers(id, 'select text from kept', 'yes');
    }, 400_000);

    test('a server that takes more memory than its package has is told, and comes back with its rows', async () => {
      const id = await create('greedy');
      await settled(id);
      await ask(id, `create table kept (text varchar(9)); insert into kept values ('yes')`);
      const grow = Array.from({ length: 12 }, (_, index) => `set @v${index} = repeat('x', 64 * 1024 * 1024 - 1)`);
      await ask(id, `${grow.join('; ')}; select sleep(60)`).catch(() => undefined);
      await says(id, /used more memory than its package has/);
      await answers(id, 'select text from kept', 'yes');
      expect((await settled(id)).status).toBe('available');
    }, 300_000);

    test('a full storage is told, closes the database for writes, and is opened by what is deleted', async () => {
      const id = await create('full');
      await settled(id);
      await ask(id, 'create table t (a int primary key, b longblob)');
      for (let index = 0; index < 18; index += 1)
        await ask(id, `insert into t values (${index}, repeat('x', 60 * 1024 * 1024))`);
      await says(id, /The storage is full/);
      await expect(ask(id, 'insert into t values (100, 1)')).rejects.toThrow(/denied/);
      await ask(id, 'drop table t');
      await waitFor(
        'no reason',
        async () => {
          await wake();
          return (await get(id)).status_reason === null;
        },
        WITHIN_MS,
      );
      await ask(id, 'create table t (a int)');
    }, 300_000);
  }),
);
