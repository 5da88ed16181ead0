/** @tier heavy @quarter 4 @covers drivers/database/kubernetes drivers/database/mariadb */
// MariaDB in pods while the control plane is killed at its steps: creation, backup, restore, deletion.
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { databaseCalls, mariadbClient } from '../support/kubernetes/database_calls';
import { addDisks, importImage, MARIADB_IMAGE, removeDisks } from '../support/kubernetes/database_image';
import { startPlantOnCluster } from '../support/kubernetes/service_on_cluster';
import type { Plant } from '../support/processes/bad_days_program';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const KILLED_AFTER_MS = [0, 400, 1_500, 3_000, 5_000];
const IMAGE = `test.local/mariadb-${process.pid}:1`;
const storageClass = `databases-${process.pid}`;

needs('mariadbd').describe('with MariaDB', () =>
  describeOnClusterOfMachine('MariaDB in pods whose control plane is killed', (cluster) => {
    let plant: Plant;
    const version = /Ver (\d+\.\d+)/.exec(execFileSync('mariadbd', ['--version']).toString())?.[1] ?? '10.11';
    const calls = databaseCalls(() => plant, cluster);
    const { get, post, objects, reaches, settled } = calls;
    const { ask } = mariadbClient(calls, () => plant.access().url);
    beforeAll(async () => {
      await importImage(cluster(), IMAGE, ...MARIADB_IMAGE);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 6 });
      plant = await startPlantOnCluster(cluster(), {
        ...{ KUBERNETES_STORAGE_CLASS: storageClass, DATABASE_IMAGES: `mariadb:${version}=${IMAGE}` },
        RETENTION_OF_DELETED_DAYS: '0',
      });
    }, 180_000);
    afterAll(async () => {
      await plant?.close();
      await removeDisks(cluster(), storageClass);
    }, 120_000);

    async function killing(): Promise<void> {
      for (const ms of KILLED_AFTER_MS) {
        await sleep(ms);
        await plant.kill();
        await plant.start();
      }
    }

    test('each step goes on, nothing is twice, no data are lost, and nothing is left', async () => {
      const id = await calls.create({ name: 'main', engine: 'mariadb' });
      await killing();
      await settled(id);
      expect(await objects('sts,pods,pvc', id)).toHaveLength(3);
      await ask(id, 'create table t (a int primary key, b longtext)');
      await ask(id, 'insert into t select seq, repeat(md5(seq), 3000) from seq_1_to_1000');

      const backup = (await post(`${id}/backups`)).body;
      await killing();
      await reaches(`${id}/backups/${backup.id}`, 'completed');
      await ask(id, 'drop table t');

      expect((await post(`${id}/restore`, { backup_id: backup.id })).status).toBe(202);
      await killing();
      expect((await settled(id)).status_reason).toBeNull();
      expect(await ask(id, 'select count(*), sum(length(b)) from t')).toBe('1000\t96000000');
      await waitFor('one claim', async () => (await objects('sts,pods,pvc,jobs', id)).length === 3, WITHIN_MS);
      expect((await get(id)).status).toBe('available');

      expect((await plant.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
      await killing();
      await waitFor('nothing', async () => (await objects('sts,pods,pvc,jobs,svc,secret', id)).length === 0, WITHIN_MS);
    }, 600_000);
  }),
);
