/** @tier heavy @quarter 4 @covers drivers/database/kubernetes drivers/database/postgresql */
// What users of PostgreSQL in pods have lost elsewhere: a full disk, changed modes of the data, a stale lock file, an
// empty disk, deleted objects, clients that stay, and an API server that is away.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { kubectlApply } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService } from '../support/deployments/deploy';
import { databaseCalls } from '../support/kubernetes/database_calls';
import { addDisks, removeDisks } from '../support/kubernetes/database_image';
import { postgresqlClient } from '../support/kubernetes/postgresql_client';
import { debianPostgresql, importPostgresql } from '../support/kubernetes/postgresql_image';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const IMAGE = `test.local/postgresql-${process.pid}:1`;
const LABEL = 'platform-api/database';
const storageClass = `databases-${process.pid}`;
const version = debianPostgresql() ?? '15';
/** Half of the grace time, after which a server is killed. */
const STOPPED_MS = 30_000;

const AWAY_MS = 20_000;

/** Nodes see what was mounted before they started. */
const small = mkdtempSync(path.join(os.tmpdir(), 'small-disk-'));
const canMount = process.getuid?.() === 0;
if (canMount) beforeAll(() => void execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=120m,mode=777', 'tmpfs', small]));
afterAll(() => {
  if (canMount) execFileSync('umount', ['--lazy', small]);
  rmSync(small, { recursive: true, force: true });
});

let service: DeployService;

needs('initdb').describe('with PostgreSQL', () =>
  describeOnTestCluster('PostgreSQL in pods on bad days', (cluster) => {
    const calls = databaseCalls(() => service, cluster);
    const { run, get, settled, wake } = calls;
    const { ask, answers, connect } = postgresqlClient(calls, () => service.url);
    beforeAll(async () => {
      await importPostgresql(cluster(), IMAGE, version);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 4 });
      // The first database gets the smallest disk.
      await kubectlApply(cluster().kubeconfig, {
        ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
        metadata: { name: `${storageClass}-small`, labels: { disks: storageClass } },
        spec: {
          ...{ capacity: { storage: '5Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: small } },
          ...{ storageClassName: storageClass, persistentVolumeReclaimPolicy: 'Retain' },
        },
      });
      service = await startOnCluster(cluster(), {
        settings: { KUBERNETES_STORAGE_CLASS: storageClass, DATABASE_IMAGES: `postgresql:${version}=${IMAGE}` },
      });
    }, 180_000);
    afterAll(async () => {
      await service.close();
      await removeDisks(cluster(), storageClass);
    }, 120_000);

    const says = (id: string, what: RegExp | null): Promise<unknown> =>
      waitFor(
        `the reason ${what}`,
        async () => {
          await wake();
          const { status_reason: reason } = await get(id);
          return what === null ? reason === null : what.test(reason ?? '');
        },
        WITHIN_MS,
      );
    async function create(name: string): Promise<string> {
      const id = await calls.create({ name, engine: 'postgresql', engine_version: version });
      expect((await settled(id)).status_reason).toBeNull();
      return id;
    }
    async function verb(id: string, name: 'stop' | 'start' | 'restart', status = 'available'): Promise<void> {
      await service.call('POST', `/v2/databases/${id}/${name}`);
      await settled(id, status);
    }
    /** Its disk, as this machine has it. */
    async function diskOf(id: string): Promise<string> {
      const volume = (
        await run('get', 'pvc', '-A', '-l', `${LABEL}=${id}`, '-o', 'jsonpath={..spec.volumeName}')
      ).trim();
      return (await run('get', 'pv', volume, '-o', 'jsonpath={.spec.hostPath.path}')).trim();
    }
    const inNamespace = async (id: string): Promise<string[]> => ['-n', await calls.namespaceOf(id)];

    if (canMount)
      test('a full disk is told, and a larger one starts the server again', async () => {
        const id = await create('full');
        expect(await diskOf(id)).toBe(small);
        await ask(id, 'create table kept as select 42 as answer');
        await ask(id, "create table filling as select repeat('x', 100) from generate_series(1, 1000000)").catch(
          () => 0,
        );
        writeFileSync(path.join(small, 'filling'), '');
        execFileSync('sh', ['-c', `cat /dev/zero > ${path.join(small, 'filling')} || true`], { stdio: 'ignore' });
        await run('delete', 'pod', ...(await inNamespace(id)), '-l', `${LABEL}=${id}`, '--grace-period=1');
        await says(id, /^The disk of the database is full, .* Increase `storage_gb`\./);
        execFileSync('mount', ['-o', 'remount,size=400m', small]);
        await answers(id, 'select answer from kept', 42);
        await says(id, null);
      }, 400_000);

    test('modes of data and a lock file of another life do not stop it, and clients do not delay its end', async () => {
      const id = await create('modes');
      await ask(id, 'create table kept as select 42 as answer');
      const idle = await connect(id);
      const begun = performance.now();
      await verb(id, 'stop', 'stopped');
      expect(performance.now() - begun).toBeLessThan(STOPPED_MS);
      await idle.end().catch(() => undefined);
      const data = path.join(await diskOf(id), 'pgdata');
      const { uid, gid } = statSync(data);
      chmodSync(data, 0o2770);
      const lock = path.join(data, 'postmaster.pid');
      writeFileSync(lock, `17\n/data/pgdata\n${Math.floor(Date.now() / 1000)}\n5432\n\n*\n`, { mode: 0o600 });
      chownSync(lock, uid, gid);
      await verb(id, 'start');
      expect(await ask(id, 'select answer from kept')).toBe(42);
      const log = await run('logs', ...(await inNamespace(id)), `sts/${id.replace('_', '-')}`);
      // It was not killed.
      expect(log).not.toContain('was interrupted');
      const mounts = await run(
        'exec',
        ...(await inNamespace(id)),
        `sts/${id.replace('_', '-')}`,
        '--',
        'cat',
        '/proc/mounts',
      );
      expect(mounts).toMatch(/ \/dev\/shm tmpfs \S*size=262144k/);
    }, 240_000);

    test('an empty disk is never begun anew, and deleted objects are put back with passwords and data', async () => {
      const id = await create('lost');
      await ask(id, 'create table kept as select 42 as answer');
      await verb(id, 'stop', 'stopped');
      const disk = await diskOf(id);
      renameSync(path.join(disk, 'pgdata'), path.join(disk, 'aside'));
      await service.call('POST', `/v2/databases/${id}/start`);
      await says(id, /the disk of the database is empty/);
      renameSync(path.join(disk, 'aside'), path.join(disk, 'pgdata'));
      await answers(id, 'select answer from kept', 42);
      await says(id, null);
      await run('delete', ...(await inNamespace(id)), 'sts,secret,svc', id.replace('_', '-'));
      await wake();
      await answers(id, 'select answer from kept', 42);
    }, 300_000);

    test('while the API server is away the database answers, and afterwards all is as before', async () => {
      const id = await create('steady');
      await ask(id, 'create table kept as select 42 as answer');
      await cluster().stopApiServer();
      try {
        await wake();
        await sleep(AWAY_MS);
        expect((await get(id)).status).toBe('available');
        expect(await ask(id, 'select answer from kept')).toBe(42);
      } finally {
        await cluster().startApiServer();
      }
      await says(id, null);
      await answers(id, 'select answer from kept', 42);
    }, 240_000);
  }),
);
