/** @tier heavy @quarter 2 @covers drivers/database/kubernetes drivers/database/redis jobs/databases */
// Databases in pods of a real cluster, with the server of Debian and a client that is not ours.
import { execFileSync } from 'node:child_process';
import { createClient } from '@redis/client';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { binCalls } from '../support/bin_calls';
import type { DeployService } from '../support/deployments/deploy';
import { addDisks, importImage, programsLayer, removeDisks } from '../support/kubernetes/database_image';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 90_000;
const IMAGE = `test.local/redis-${process.pid}:1`;
const LABEL = 'platform-api/database';
const storageClass = `databases-${process.pid}`;

let service: DeployService;
const bin = binCalls(() => service);

needs('redis-server').describe('with Redis', () =>
  describeOnClusterOfMachine('databases in pods', (cluster) => {
    const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
    const version = /v=(\d+\.\d+)/.exec(execFileSync('redis-server', ['--version']).toString())?.[1] ?? '7.0';
    beforeAll(async () => {
      await importImage(cluster(), IMAGE, ['redis-server']);
      await addDisks(cluster(), storageClass, { kind: 'shared', count: 8 });
      service = await startOnCluster(cluster(), {
        layers: [await programsLayer(['redis-cli'])],
        settings: {
          KUBERNETES_STORAGE_CLASS: storageClass,
          RETENTION_OF_DELETED_DAYS: '7',
          DATABASE_IMAGES: `redis:${version}=${IMAGE},redis:9.9=test.local/absent:1`,
        },
      });
    }, 120_000);
    /** Rows of databases stay for their backups. */
    async function removeAll(): Promise<void> {
      for (const table of ['applications', 'databases'])
        for (const { id } of await service.sql<{ id: string }>(`select id from ${table} where deleted_at is null`))
          expect((await service.call('DELETE', `/v2/${table}/${id}`)).text).toBe('');
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
        await removeAll();
      } finally {
        await service.close();
        await removeDisks(cluster(), storageClass);
      }
    }, 240_000);

    const databaseOf = async (id: string): Promise<any> => (await service.call('GET', `/v2/databases/${id}`)).body;
    const settled = (id: string, status = 'available'): Promise<any> =>
      waitFor(
        `a database that is ${status}`,
        async () => {
          const database = await databaseOf(id);
          return database.status === status && database;
        },
        WITHIN_MS,
      );
    async function create(name: string, more: object = {}): Promise<string> {
      const made = await service.call('POST', '/v2/databases', {
        body: { name, engine: 'redis', engine_version: version, ...more },
      });
      expect([made.status, made.body.detail]).toEqual([201, undefined]);
      return made.body.id;
    }
    const namespace = async (id: string): Promise<string> =>
      (
        await run('get', 'sts', '-A', '-l', `platform-api/database=${id}`, '-o', 'jsonpath={..metadata.namespace}')
      ).trim();
    const podOf = async (id: string): Promise<{ ip: string; uid: string }> => {
      const selector = ['-A', '-l', `platform-api/database=${id}`];
      const found = await run('get', 'pods', ...selector, '-o', 'jsonpath={..status.podIP} {..metadata.uid}');
      const [ip = '', uid = ''] = found.split(' ');
      return { ip, uid };
    };

    /** Sends a command as a user, with a client that verifies the certificate and the name. */
    async function ask(id: string, words: string[], login?: { username: string; password: string }): Promise<unknown> {
      const { body } = await service.call('GET', `/v2/databases/${id}/credentials`);
      const [endpoint] = body.endpoints;
      const { username, password } = login ?? body;
      const authority = await (await fetch(`${service.url}/databases/ca.pem`)).text();
      const client = createClient({
        ...{ username, password, disableClientInfo: true },
        socket: {
          ...{ host: (await podOf(id)).ip, port: endpoint.port, tls: true, reconnectStrategy: false },
          ...{ ca: authority, servername: endpoint.host },
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

    test('an application reaches its database, which keeps its data through all that ends a pod', async () => {
      const id = await create('cache');
      expect(await settled(id)).toMatchObject({ status_reason: null, engine_version: version });
      const { body: credentials } = await service.call('GET', `/v2/databases/${id}/credentials`);
      const host = `${id.replace('_', '-')}.${await namespace(id)}.svc`;
      expect(credentials.endpoints).toMatchObject([{ host, port: 6379, access: 'private' }]);
      expect(credentials.endpoints[0].connection_string).toContain(`@${host}:6379`);
      expect(await ask(id, ['SET', 'kept', 'yes'])).toBe('OK');
      await isRestricted(id);
      await isDeployed(id);

      await run('delete', 'pod', '-n', await namespace(id), '-l', `platform-api/database=${id}`);
      await waitFor(
        'its data again',
        async () => (await ask(id, ['GET', 'kept']).catch(() => null)) === 'yes',
        WITHIN_MS,
      );
      const scaled = (await podOf(id)).uid;
      await run('scale', 'sts', '-n', await namespace(id), id.replace('_', '-'), '--replicas=0');
      await service.sql('update databases set next_at = now()');
      await waitFor(
        'another pod',
        async () => (await podOf(id)).uid !== scaled && (await ask(id, ['GET', 'kept']).catch(() => null)) === 'yes',
        WITHIN_MS,
      );

      await isPutBack(id);
      await settled(id);
      await service.call('POST', `/v2/databases/${id}/stop`);
      await settled(id, 'stopped');
      expect((await podOf(id)).uid).toBe('');
      await service.call('POST', `/v2/databases/${id}/start`);
      await settled(id);
      const before = await podOf(id);
      await service.call('POST', `/v2/databases/${id}/restart`);
      await waitFor('a restart', async () => (await databaseOf(id)).status === 'available', WITHIN_MS);
      expect((await podOf(id)).uid).not.toBe(before.uid);
      expect(await ask(id, ['GET', 'kept'])).toBe('yes');
      await inTheBin(id);
    }, 400_000);

    /** A pod that does not become ready is not replaced by its StatefulSet alone. */
    async function isPutBack(id: string): Promise<void> {
      const place = ['-n', await namespace(id)];
      const name = id.replace('_', '-');
      const limits = (): Promise<string> => run('get', 'sts', ...place, name, '-o', 'jsonpath={..limits}');
      const before = await limits();
      // Else the platform puts it back before a pod is without its image: each end of a pod wakes it.
      const held = `update databases set lease_owner = 'nobody', lease_until = now() + interval '1 hour'
        where id = $1 and lease_until is null returning id`;
      await waitFor('the lease', async () => (await service.sql(held, [id])).length, WITHIN_MS);
      await run('set', 'resources', ...place, `sts/${name}`, '--limits=memory=4Gi');
      await run('set', 'image', ...place, `sts/${name}`, 'database=test.local/absent:1');
      await waitFor(
        'a pod without an image',
        async () => /ErrImagePull|ImagePullBackOff/.test(await run('get', 'pods', ...place, '-o', 'json')),
        WITHIN_MS,
      );
      await service.sql('update databases set lease_owner = null, lease_until = null, next_at = now() where id = $1', [
        id,
      ]);
      await waitFor(
        'its data again',
        async () => (await ask(id, ['GET', 'kept']).catch(() => null)) === 'yes',
        WITHIN_MS,
      );
      expect(await run('get', 'sts', ...place, name, '-o', 'jsonpath={..image}')).toBe(IMAGE);
      expect(await limits()).toBe(before);
    }

    async function inTheBin(id: string): Promise<void> {
      const [attachment] = (await service.call('GET', `/v2/databases/${id}/attachments`)).body.data;
      await service.call('DELETE', `/v2/databases/${id}/attachments/${attachment.id}`);
      const entry = await bin.deleted(`/v2/databases/${id}`);
      await waitFor('no pod', async () => (await podOf(id)).uid === '', WITHIN_MS);
      expect(await run('get', 'pvc', '-A', '-l', `platform-api/database=${id}`, '-o', 'name')).not.toBe('');
      expect(await bin.restored(entry)).toEqual([]);
      await settled(id);
      expect(await ask(id, ['GET', 'kept'])).toBe('yes');
    }

    async function isRestricted(id: string): Promise<void> {
      const pod = JSON.parse(await run('get', 'pods', '-A', '-l', `platform-api/database=${id}`, '-o', 'json'))
        .items[0];
      expect(pod.spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      const command = JSON.stringify(pod.spec.containers[0]);
      const { body } = await service.call('GET', `/v2/databases/${id}/credentials`);
      expect(command).not.toContain(body.password);
      // Nobody but its project and the ingress is let in.
      const policy = JSON.parse(await run('get', 'networkpolicy', '-n', await namespace(id), 'platform', '-o', 'json'));
      expect(policy.spec.ingress[0].from).toEqual([{ podSelector: {} }, { ipBlock: expect.anything() }]);
    }

    async function isDeployed(id: string): Promise<void> {
      const service_ip = await run(
        ...['get', 'svc', '-n', await namespace(id), id.replace('_', '-'), '-o', 'jsonpath={.spec.clusterIP}'],
      );
      // The test cluster has no DNS.
      const application = await service.application({
        Procfile: 'web: sh ask.sh\n',
        'ask.sh':
          'mkdir -p /tmp/site; cd /tmp/site; echo ok > index.html; export REDISCLI_AUTH=$REDIS_PASSWORD\n' +
          `(while true; do redis-cli --tls --cacert $DATABASE_CA_FILE -h ${service_ip} --sni $REDIS_HOST ` +
          '-p $REDIS_PORT --user $REDIS_USER incr visits > now 2>&1; busybox mv now answer.txt; sleep 1; done) &\n' +
          'exec busybox httpd -f -p "$PORT" -h /tmp/site\n',
      });
      const attached = await service.call('POST', `/v2/databases/${id}/attachments`, {
        body: { application_id: application.id },
      });
      expect(attached.status).toBe(201);
      const deployment = await application.deploy();
      expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
      await waitFor('answers', async () => /^\d+\s*$/.test((await application.visit('/answer.txt')).body), WITHIN_MS);
    }

    test('users, passwords, metrics, logs and backups are as on a host, and the rest is refused', async () => {
      const id = await create('users');
      await settled(id);
      const reader = (
        await service.call('POST', `/v2/databases/${id}/users`, { body: { username: 'reader', access: 'read_only' } })
      ).body;
      await settled(id);
      const login = { username: 'reader', password: reader.password };
      await waitFor('the user', async () => (await ask(id, ['GET', 'x'], login).catch(() => 0)) === null, WITHIN_MS);
      await expect(ask(id, ['SET', 'x', '1'], login)).rejects.toThrow(/NOPERM/);
      await ask(id, ['SET', 'big', 'x'.repeat(100_000)]);
      await service.call('POST', `/v2/databases/${id}/credentials/rotate`, { body: { immediate: true } });
      await waitFor('the new password', async () => (await ask(id, ['PING']).catch(() => 0)) === 'PONG', WITHIN_MS);
      await settled(id);
      await waitFor(
        'its log',
        async () =>
          JSON.stringify((await service.call('GET', `/v2/databases/${id}/logs`)).body).includes('Ready to accept'),
        WITHIN_MS,
      );
      const backup = (await service.call('POST', `/v2/databases/${id}/backups`, { body: {} })).body;
      const made = await waitFor(
        'the backup',
        async () => {
          const { body } = await service.call('GET', `/v2/databases/${id}/backups/${backup.id}`);
          return ['completed', 'failed'].includes(body.status) && body;
        },
        WITHIN_MS,
      );
      expect(made).toMatchObject({ status: 'completed', status_reason: null });
      expect(made.size_bytes).toBeGreaterThan(100);
      await refused(id);
    }, 240_000);

    async function refused(id: string): Promise<void> {
      const post = (place: string, body: object): Promise<any> =>
        service.call('POST', `/v2/databases/${id}/${place}`, { body });
      for (const answer of [
        await post('replicas', { name: 'more' }),
        await post('endpoints', { name: 'world', access: 'public', allowed_sources: ['192.0.2.0/24'] }),
      ])
        expect([answer.status, answer.body.code]).toEqual([422, 'engine_feature_unsupported']);
      expect((await post('endpoints', { name: 'second' })).body.host).toMatch(/\.svc$/);
    }

    test('what stands in the way is said, and what is not ours is left alone', async () => {
      const id = await create('absent', { engine_version: '9.9' });
      await waitFor(
        'a reason',
        async () => /cannot pull the image/.test((await databaseOf(id)).status_reason ?? ''),
        WITHIN_MS,
      );
      await service.call('DELETE', `/v2/databases/${id}`);
      const other = await create('foreign');
      await settled(other);
      await strangersAreLeftAlone(other);
      const place = ['-n', await namespace(other), 'sts', other.replace('_', '-')];
      await run('label', ...place, 'platform-api/installation=another', '--overwrite');
      await service.sql('update databases set next_at = now()');
      await waitFor(
        'a reason',
        async () => {
          await service.sql('update databases set next_at = now()');
          return /did not create/.test((await databaseOf(other)).status_reason ?? '');
        },
        WITHIN_MS,
      );
      await run(
        'label',
        ...place,
        `platform-api/installation=${(await namespace(other)).replace(/-prj-.*/, '')}`,
        '--overwrite',
      );
      await service.sql('update databases set next_at = now()');
      await waitFor('no reason', async () => (await databaseOf(other)).status_reason === null, WITHIN_MS);
    }, 240_000);

    /** Whose labels are copied, in a namespace of somebody else. */
    async function strangersAreLeftAlone(id: string): Promise<void> {
      const [pod] = JSON.parse(await run('get', 'pods', '-A', '-l', `platform-api/database=${id}`, '-o', 'json')).items;
      const stranger = `stranger-${process.pid}`;
      const metadata = { name: 'stranger', namespace: stranger, labels: pod.metadata.labels };
      const containers = [{ name: 'database', image: IMAGE, command: ['sleep', '3600'] }];
      await kubectlApply(
        cluster().kubeconfig,
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: stranger } },
        // That of the name default is made by a controller, at some time.
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: stranger, namespace: stranger } },
        {
          ...{ apiVersion: 'v1', kind: 'Pod', metadata },
          spec: { containers, terminationGracePeriodSeconds: 0, serviceAccountName: stranger },
        },
      );
      await service.call('POST', `/v2/databases/${id}/restart`);
      await settled(id);
      await service.call('POST', `/v2/databases/${id}/stop`);
      await settled(id, 'stopped');
      expect(await run('get', 'pod', '-n', stranger, 'stranger', '-o', 'name')).toContain('stranger');
      await run('delete', 'namespace', stranger, '--wait=false');
      await service.call('POST', `/v2/databases/${id}/start`);
      await settled(id);
    }
  }),
);
