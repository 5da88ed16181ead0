/** @tier heavy @quarter 2 @covers drivers/database/kubernetes drivers/database/postgresql jobs/databases */
// PostgreSQL in pods of a real cluster, with the server of Debian and clients that are not ours.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { binCalls } from '../support/bin_calls';
import type { DeployService } from '../support/deployments/deploy';
import { databaseCalls } from '../support/kubernetes/database_calls';
import { addDisks, removeDisks } from '../support/kubernetes/database_image';
import { postgresqlClient } from '../support/kubernetes/postgresql_client';
import { debianPostgresql, importPostgresql, programOf, psqlLayers } from '../support/kubernetes/postgresql_image';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { freePort } from '../support/processes/free_port';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 120_000;
const IMAGE = `test.local/postgresql-${process.pid}:1`;
const LABEL = 'platform-api/database';
const storageClass = `databases-${process.pid}`;
const version = debianPostgresql() ?? '15';

let service: DeployService;
const bin = binCalls(() => service);

needs('initdb', 'psql').describe('with PostgreSQL', () =>
  describeOnClusterOfMachine('PostgreSQL in pods', (cluster) => {
    const calls = databaseCalls(() => service, cluster);
    const { run, get, settled, backUp, podOf, namespaceOf, objects } = calls;
    const { ask, answers } = postgresqlClient(calls, () => service.url);
    beforeAll(async () => {
      await importPostgresql(cluster(), IMAGE, version);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 12 });
      service = await startOnCluster(cluster(), {
        layers: await psqlLayers(version),
        settings: {
          ...{ KUBERNETES_STORAGE_CLASS: storageClass, RETENTION_OF_DELETED_DAYS: '7' },
          DATABASE_IMAGES: `postgresql:${version}=${IMAGE}`,
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

    const create = (name: string, more: object = {}): Promise<string> =>
      calls.create({ name, engine: 'postgresql', engine_version: version, ...more });

    /** A program of Debian with the connection string of the platform; the test cluster has no DNS. */
    async function runClient(id: string, name: string, args: string[]): Promise<string> {
      const [endpoint] = (await get(`${id}/credentials`)).endpoints;
      const authority = path.join(cluster().directory, `ca-${process.pid}.pem`);
      writeFileSync(authority, await (await fetch(`${service.url}/databases/ca.pem`)).text());
      const url = new URL(endpoint.connection_string);
      url.searchParams.set('sslmode', 'verify-full');
      url.searchParams.set('sslrootcert', authority);
      const env = { ...process.env, PGHOSTADDR: (await podOf(id)).ip };
      const { stdout } = await promisify(execFile)(programOf(version, name), ['-d', url.href, ...args], {
        ...{ env, maxBuffer: 1 << 26 },
      });
      return stdout;
    }

    test('an application reaches its database, which keeps its data through all that ends a pod', async () => {
      const id = await create('shop');
      expect(await settled(id)).toMatchObject({ status_reason: null, engine_version: version });
      const host = `${id.replace('_', '-')}.${await namespaceOf(id)}.svc`;
      expect((await get(`${id}/credentials`)).endpoints).toMatchObject([{ host, port: 5432, access: 'private' }]);
      await ask(id, 'create table kept as select 42 as answer');
      expect((await runClient(id, 'psql', ['-Atc', 'select answer, version() from kept'])).trim()).toMatch(
        `42|PostgreSQL ${version}.`,
      );
      expect(await runClient(id, 'pg_dump', [])).toContain('COPY public.kept');
      await isRestricted(id);
      await isDeployed(id);

      await run('delete', 'pod', '-n', await namespaceOf(id), '-l', `${LABEL}=${id}`);
      await answers(id, 'select answer from kept', 42);
      const scaled = (await podOf(id)).uid;
      await run('scale', 'sts', '-n', await namespaceOf(id), id.replace('_', '-'), '--replicas=0');
      await service.sql('update databases set next_at = now()');
      await waitFor('another pod', async () => (await podOf(id)).uid !== scaled, WITHIN_MS);
      await answers(id, 'select answer from kept', 42);

      await settled(id);
      await isPutBack(id);
      await service.call('POST', `/v2/databases/${id}/stop`);
      await settled(id, 'stopped');
      expect((await podOf(id)).uid).toBe('');
      await service.call('POST', `/v2/databases/${id}/start`);
      await settled(id);
      const before = await podOf(id);
      await service.call('POST', `/v2/databases/${id}/restart`);
      await settled(id);
      expect((await podOf(id)).uid).not.toBe(before.uid);
      await answers(id, 'select answer from kept', 42);
      await inTheBin(id);
    }, 500_000);

    async function isPutBack(id: string): Promise<void> {
      const name = id.replace('_', '-');
      const place = ['-n', await namespaceOf(id)];
      await run('set', 'image', ...place, `sts/${name}`, 'database=test.local/absent:1');
      await run('delete', ...place, 'secret', name);
      await waitFor(
        'its image',
        async () => {
          await service.sql('update databases set next_at = now()');
          return (await run('get', 'sts', ...place, name, '-o', 'jsonpath={..image}')) === IMAGE;
        },
        WITHIN_MS,
      );
      await answers(id, 'select answer from kept', 42);
      await settled(id);
    }

    async function inTheBin(id: string): Promise<void> {
      const [attachment] = (await service.call('GET', `/v2/databases/${id}/attachments`)).body.data;
      await service.call('DELETE', `/v2/databases/${id}/attachments/${attachment.id}`);
      const entry = await bin.deleted(`/v2/databases/${id}`);
      await waitFor('no pod', async () => (await podOf(id)).uid === '', WITHIN_MS);
      expect(await objects('pvc', id)).toHaveLength(1);
      expect(await bin.restored(entry)).toEqual([]);
      await settled(id);
      await answers(id, 'select answer from kept', 42);
    }

    async function isRestricted(id: string): Promise<void> {
      const pod = JSON.parse(await run('get', 'pods', '-A', '-l', `${LABEL}=${id}`, '-o', 'json')).items[0];
      expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      const { password } = await get(`${id}/credentials`);
      expect(JSON.stringify(pod.spec)).not.toContain(password);
      expect(await run('logs', '-n', pod.metadata.namespace, pod.metadata.name)).not.toMatch(/SCRAM|password/);
    }

    async function isDeployed(id: string): Promise<void> {
      const place = ['-n', await namespaceOf(id), id.replace('_', '-')];
      const address = await run('get', 'svc', ...place, '-o', 'jsonpath={.spec.clusterIP}');
      // The test cluster has no DNS.
      const application = await service.application({
        Procfile: 'web: sh ask.sh\n',
        'ask.sh':
          `mkdir -p /tmp/site; cd /tmp/site; echo ok > index.html; export PGHOSTADDR=${address}\n` +
          'export PGSSLMODE=verify-full PGSSLROOTCERT=$DATABASE_CA_FILE\n' +
          `(while true; do /usr/lib/postgresql/${version}/bin/psql -Atc 'select answer from kept' "$DATABASE_URL" ` +
          '> now 2>&1; busybox mv now answer.txt; sleep 1; done) &\n' +
          'exec busybox httpd -f -p "$PORT" -h /tmp/site\n',
      });
      const attached = await service.call('POST', `/v2/databases/${id}/attachments`, {
        body: { application_id: application.id },
      });
      expect(attached.status).toBe(201);
      const deployment = await application.deploy();
      expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
      await waitFor('answers', async () => (await application.visit('/answer.txt')).body.trim() === '42', WITHIN_MS);
    }

    test('users, passwords, sizes, metrics and logs are as on a host, and the rest is refused', async () => {
      const id = await create('users');
      await settled(id);
      await ask(id, 'create table visits (at int)');
      const { body: reader } = await service.call('POST', `/v2/databases/${id}/users`, {
        body: { username: 'reader', access: 'read_only' },
      });
      await settled(id);
      const login = { username: 'reader', password: reader.password };
      await answers(id, 'select count(*)::int from visits', 0, login);
      await expect(ask(id, 'insert into visits values (1)', login)).rejects.toThrow(/permission denied/);
      await expect(ask(id, 'select 1/0')).rejects.toThrow(/division/);
      await service.call('POST', `/v2/databases/${id}/credentials/rotate`, { body: { immediate: true } });
      await answers(id, 'select 1', 1);
      await settled(id);
      await ask(id, 'create database more');
      const logs = async (): Promise<string> =>
        JSON.stringify((await service.call('GET', `/v2/databases/${id}/logs?limit=100`)).body);
      await waitFor('its log', async () => /"level":"error".*division by zero/.test(await logs()), WITHIN_MS);
      expect(await logs()).not.toMatch(/platform_admin|SCRAM/);
      await extended(id);
      await resized(id);
      await refused(id);
    }, 300_000);

    async function extended(id: string): Promise<void> {
      const { data } = (await service.call('GET', `/v2/databases/${id}/extensions?limit=100`)).body;
      const names = data.map(({ name }: { name: string }) => name);
      expect(names).toContain('pg_trgm');
      const enabled = await service.call('POST', `/v2/databases/${id}/extensions/pg_trgm/enable`);
      expect([enabled.status, enabled.body.detail]).toEqual([202, undefined]);
      await answers(id, "select similarity('word', 'word')::int", 1);
    }

    async function resized(id: string): Promise<void> {
      const limit = (): Promise<string> =>
        run('get', 'sts', '-A', '-l', `${LABEL}=${id}`, '-o', 'jsonpath={..limits.memory}');
      const before = [await limit(), await ask(id, 'show max_connections')];
      const changed = await service.call('PATCH', `/v2/databases/${id}`, {
        body: { database_package: 's-1vcpu-1gb', storage_gb: 12 },
      });
      expect([changed.status, changed.body.detail]).toEqual([200, undefined]);
      await settled(id);
      await waitFor(
        'its size',
        async () => (await ask(id, 'show max_connections').catch(() => '')) === '53',
        WITHIN_MS,
      );
      expect([await limit(), '53']).not.toEqual(before);
      await settled(id);
    }

    async function refused(id: string): Promise<void> {
      const post = (place: string, body: object): Promise<any> =>
        service.call('POST', `/v2/databases/${id}/${place}`, { body });
      for (const answer of [
        await post('replicas', { name: 'more' }),
        await post('endpoints', { name: 'pool', pool_mode: 'session' }),
        await post('endpoints', { name: 'world', access: 'public', allowed_sources: ['192.0.2.0/24'] }),
        await post('restore', { point_in_time: new Date(Date.now() - 1_000).toISOString() }),
      ])
        expect([answer.status, answer.body.code]).toEqual([422, 'engine_feature_unsupported']);
      expect((await post('upgrade', { engine_version: '99' })).body.code).toBe('engine_version_unsupported');
    }

    test('a backup is restored in place and into another database, and a damaged one changes nothing', async () => {
      const id = await create('origin');
      await settled(id);
      await ask(id, 'create table kept as select n, repeat(md5(n::text), 50) as text from generate_series(1, 5000) n');
      const count = 'select count(*)::int from kept';
      const backup = await backUp(id);
      await ask(id, 'drop table kept');
      await ask(id, 'create table later as select 1');
      const begun = await service.call('POST', `/v2/databases/${id}/restore`, { body: { backup_id: backup } });
      expect([begun.status, begun.body.detail]).toEqual([202, undefined]);
      expect((await settled(id)).status_reason).toBeNull();
      expect([await ask(id, count), await ask(id, "select to_regclass('later')::text")]).toEqual([5000, null]);
      expect(await objects('pvc,jobs', id)).toHaveLength(1);
      await run('delete', 'pod', '-n', await namespaceOf(id), '-l', `${LABEL}=${id}`);
      await answers(id, count, 5000);

      const copy = await create('copy', { restore_from: { database_id: id, backup_id: backup } });
      await settled(copy);
      expect(await ask(copy, count)).toBe(5000);
      // Those of the backup are not let in.
      const { username, password } = await get(`${id}/credentials`);
      await expect(ask(copy, 'select 1', { username, password })).rejects.toThrow(/authentication failed/);
      await isDamagedOneRefused(id, backup, count);
    }, 400_000);

    async function isDamagedOneRefused(id: string, backup: string, count: string): Promise<void> {
      await ask(id, 'insert into kept values (0, null)');
      const { uid } = await podOf(id);
      const file = path.join(service.platform.config.databaseDir, 'backups', id, backup, 'base', 'base.tar.gz');
      const bytes = readFileSync(file);
      const middle = bytes.length >> 1;
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 0xff, middle);
      writeFileSync(file, bytes);
      await service.call('POST', `/v2/databases/${id}/restore`, { body: { backup_id: backup } });
      const reason = 'The restore failed. The file base.tar.gz of the backup is damaged. The data are as before.';
      expect((await settled(id)).status_reason).toBe(reason);
      expect([await ask(id, count), (await podOf(id)).uid]).toEqual([5001, uid]);
      await waitFor('nothing but the claim', async () => (await objects('pvc,jobs', id)).length === 1, WITHIN_MS);
    }

    test('a database of the machine comes into the cluster by its backup', async () => {
      const port = await freePort();
      await service.sql(`create function stays() returns trigger language plpgsql as $$ begin
        if new.name = 'machine' then new.on_cluster := false; new.port := ${port}; end if; return new; end $$`);
      await service.sql('create trigger stays before insert on databases for each row execute function stays()');
      const id = await create('machine');
      await settled(id);
      const { username, password, database_name: database, endpoints } = await get(`${id}/credentials`);
      const client = new Client({
        ...{ host: '127.0.0.1', port: endpoints[0].port, user: username, password, database },
        ssl: { rejectUnauthorized: false },
      });
      await client.connect();
      await client.query('create table kept as select 42 as answer');
      await client.end();
      const backup = await backUp(id);
      const copy = await create('moved', { restore_from: { database_id: id, backup_id: backup } });
      await settled(copy);
      expect(await ask(copy, 'select answer from kept')).toBe(42);
      expect(await objects('sts', copy)).toHaveLength(1);
    }, 240_000);
  }),
);
