/** @tier heavy @quarter 2 @covers jobs/applications/workload jobs/databases drivers/workload */
// Databases of this machine, read by applications on a real cluster with a client that is not ours.
import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { binCalls } from '../support/bin_calls';
import { tarOf } from '../support/builds/images';
import { hasPostgresqlTools, openDatabaseWorkshop } from '../support/databases/database_hall';
import { makeApplication, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { hostOfCluster, podsOfCluster, startOnCluster } from '../support/kubernetes/service_on_cluster';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 60_000;

/** psql of this machine with its libraries, as a layer of an image. */
function psqlLayer(): Promise<Buffer> {
  const psql = realpathSync(
    `/usr/lib/postgresql/${execFileSync('ls', ['/usr/lib/postgresql']).toString().split('\n')[0]}/bin/psql`,
  );
  const libraries = execFileSync('ldd', [psql])
    .toString()
    .split('\n')
    .flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  const files = libraries.map((file) => ({ name: file.slice(1), mode: 0o755, content: readFileSync(file) }));
  const temporary = { name: 'tmp/', type: 'directory' as const, mode: 0o1777 };
  return tarOf([temporary, ...files, { name: 'usr/bin/psql', mode: 0o755, content: readFileSync(psql) }]);
}

/** Asks again and again, and shows the last answer. The loader verifies the name and the certificate of the server. */
const asking = (address: string) => ({
  Procfile: 'web: sh ask.sh\n',
  'ask.sh':
    'mkdir -p /tmp/site; cd /tmp/site; echo ok > index.html\n' +
    `(while true; do psql "${address}" -Atc "select current_user || ' by ' || host(inet_client_addr())" > now 2>&1; ` +
    'busybox mv now answer.txt; sleep 1; done) &\n' +
    'exec busybox httpd -f -p "$PORT" -h /tmp/site\n',
});
const VERIFIED = '$DATABASE_URL&sslmode=verify-full';

let service: DeployService;
const bin = binCalls(() => service);
let host: string;
const workshop = openDatabaseWorkshop();

async function newDatabase(name: string): Promise<string> {
  const made = await service.call('POST', '/v2/databases', { body: { name, engine: 'postgresql' } });
  expect(made.status).toBe(201);
  await waitFor(
    'the database',
    async () => (await service.call('GET', `/v2/databases/${made.body.id}`)).body.status === 'available',
    WITHIN_MS,
  );
  return made.body.id;
}

async function answerOf(application: TestApplication, expected: RegExp): Promise<string> {
  return waitFor(
    `an answer like ${expected}`,
    async () => {
      const { body } = await application.visit('/answer.txt');
      return expected.test(body) && body.trim();
    },
    WITHIN_MS,
  );
}

if (hasPostgresqlTools())
  describeOnClusterOfMachine('databases of applications on a cluster', (cluster) => {
    const { test: testWithPsql } = needs('psql');
    beforeAll(async () => {
      host = await hostOfCluster(cluster());
      service = await startOnCluster(cluster(), {
        layers: [await psqlLayer()],
        settings: {
          ...workshop.settings,
          RETENTION_OF_DELETED_DAYS: '7',
          DATABASE_ADDRESS_FOR_PODS: host,
          DATABASE_SOURCES_OF_PODS: await podsOfCluster(cluster()),
        },
      });
    }, 90_000);
    afterAll(async () => {
      for (const table of ['applications', 'databases'])
        for (const { id } of await service.sql<{ id: string }>(`select id from ${table} where deleted_at is null`))
          await service.call('DELETE', `/v2/${table}/${id}`);
      const kept = await service.sql<{ id: string; project_id: string }>(
        'select id, project_id from deleted_resources',
      );
      for (const { id, project_id: project } of kept) await service.call('DELETE', `/v2/bin/${id}`, { project });
      await service.clear();
      await waitFor('no database', async () => (await service.sql('select 1 from databases')).length === 0, WITHIN_MS);
      await service.close();
      workshop.clear();
    }, 240_000);

    testWithPsql(
      'a pod reads the attached database with a verified certificate, and nobody else reaches it',
      async () => {
        const id = await newDatabase('main');
        const application = await service.application(asking(VERIFIED));
        const attached = await service.call('POST', `/v2/databases/${id}/attachments`, {
          body: { application_id: application.id },
        });
        expect(attached.status).toBe(201);
        const deployment = await application.deploy();
        expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
        const [address] = await service.sql<{ address: string }>(
          `select location ->> 'address' as address from instances where application_id = $1`,
          [application.id],
        );
        expect(await answerOf(application, /^app by/)).toBe(`app by ${address?.address}`);
        const entry = await bin.deleted(`/v2/applications/${application.id}`);
        await waitFor(
          'no instance',
          async () => (await service.sql('select 1 from instances')).length === 0,
          WITHIN_MS,
        );
        await service.sql('update databases set next_at = now()');
        expect(await bin.restored(entry)).toEqual([]);
        expect(await answerOf(application, /^app by/)).toMatch(/^app by /);
        await othersAreRefused(id);
        await service.call('DELETE', `/v2/databases/${id}/attachments/${attached.body.id}`);
        expect(await answerOf(application, /refused|no pg_hba/)).toMatch(/Connection refused|no pg_hba.conf entry/);
      },
      240_000,
    );

    async function othersAreRefused(id: string): Promise<void> {
      const [{ port } = { port: 0 }] = await service.sql<{ port: number }>('select port from databases where id = $1', [
        id,
      ]);
      const other = await service.newProject();
      const elsewhere: DeployService['call'] = (method, place, options) =>
        service.call(method, place, { ...options, project: other.id, key: other.key });
      const stranger = await makeApplication(
        { ...service, call: elsewhere },
        asking(`postgresql://app:guess@${host}:${port}/app?sslmode=require`),
        {},
      );
      expect((await stranger.deploy()).status).toBe('active');
      expect(await answerOf(stranger, /authentication/)).toMatch(/password authentication failed/);
      const lonely = await newDatabase('lonely');
      const [{ port: closed } = { port: 0 }] = await service.sql<{ port: number }>(
        'select port from databases where id = $1',
        [lonely],
      );
      stranger.push(asking(`postgresql://app:guess@${host}:${closed}/app?sslmode=require`));
      expect((await stranger.deploy()).status).toBe('active');
      expect(await answerOf(stranger, new RegExp(`${closed}`))).toMatch(/refused/);
      const policies = JSON.parse(await kubectl(cluster().kubeconfig, 'get', 'networkpolicies', '-A', '-o', 'json'))
        .items.filter(
          ({ metadata }: { metadata: { namespace: string; name: string } }) =>
            metadata.namespace.startsWith(service.platform.config.kubernetesNamespacePrefix) &&
            metadata.name !== 'platform',
        )
        .map(({ spec }: { spec: { egress: unknown } }) => spec.egress);
      expect(policies).toEqual([[{ to: [{ ipBlock: { cidr: `${host}/32` } }], ports: [{ port, protocol: 'TCP' }] }]]);
      await elsewhere('DELETE', `/v2/applications/${stranger.id}`);
    }
  });
