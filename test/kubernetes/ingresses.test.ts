/** @tier heavy @quarter 2 @covers server/start_ingress.ts server/ingress.ts server/agents/reported_traffic.ts */
// Several ingresses in front of the pods of a cluster: the same routes, certificates and answers to challenges.
import { createHash, X509Certificate } from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import tls from 'node:tls';
import { publishChallenge, sealedCertificate } from '../../models/domains/certificate';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService } from '../support/deployments/deploy';
import { makeCertificate } from '../support/ingress/ingress_certificate';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { endPrograms, startProgram, type Program } from '../support/processes/program';
import { waitFor } from '../support/wait_for';

const site = (text: string) => ({ Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': text });

interface Replica {
  program: Program;
  http: number;
  https: number;
}

let service: DeployService;

async function startReplica(kubeconfig: string): Promise<Replica> {
  const { databaseUrl, config } = service.platform;
  const program = startProgram(
    {
      ...{ DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: config.dataDir, WORKLOADS: 'kubernetes' },
      ...{ KUBECONFIG: kubeconfig, INGRESS_TLS_PORT: '0', REGISTRY_PORT: '5000' },
    },
    { entry: 'server/ingress.ts' },
  );
  await program.ready();
  const line = program
    .out()
    .split('\n')
    .find((one) => one.includes('"msg":"the ingress is ready"'));
  return { program, ...(JSON.parse(line ?? '{}') as { http: number; https: number }) };
}

function visit(port: number, host: string, place = '/'): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.get({ port, path: place, headers: { host }, agent: false }, (response) => {
      let body = '';
      response.on('data', (text: Buffer) => (body += text.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.on('error', reject);
  });
}

/** The certificate that a client gets, by its fingerprint. */
function certificateAt(port: number, servername: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = tls.connect({ port, servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? null);
      socket.end();
    });
    socket.on('error', () => resolve(null));
  });
}

describeOnTestCluster('several ingresses', (cluster) => {
  let replicas: Replica[];
  beforeAll(async () => {
    service = await startOnCluster(cluster(), { settings: { INGRESS_TLS_PORT: '0' } });
    replicas = [await startReplica(cluster().kubeconfig), await startReplica(cluster().kubeconfig)];
  }, 120_000);
  afterAll(async () => {
    await endPrograms();
    await service?.close();
  }, 120_000);

  test('all route to the pods, none loses a request at a deployment, and the log and metrics have them', async () => {
    const application = await service.application(site('one'));
    expect((await application.deploy()).status).toBe('active');
    for (const { http: port } of replicas) {
      await waitFor('its route', async () => (await visit(port, application.host)).status === 200);
      expect((await visit(port, application.host)).body).toBe('one');
      expect((await visit(port, 'nobody.example.com')).status).toBe(404);
    }
    application.push(site('two'));
    let over = false;
    const seen = replicas.map(async ({ http: port }) => {
      const found = new Map<string, number>();
      while (!over) {
        const answer = await visit(port, application.host).catch((error: Error) => ({
          status: 0,
          body: error.message,
        }));
        const key = `${answer.status} ${answer.body}`;
        found.set(key, (found.get(key) ?? 0) + 1);
      }
      return found;
    });
    expect((await application.deploy()).status).toBe('active');
    await waitFor('one instance', async () => (await application.get('/instances')).data.length === 1);
    over = true;
    for (const found of await Promise.all(seen)) expect([...found.keys()].sort()).toEqual(['200 one', '200 two']);
    const total = (await Promise.all(seen)).flatMap((found) => [...found.values()]).reduce((sum, one) => sum + one, 0);
    await waitFor('all requests in the metrics', async () => {
      const [row] = await service.sql<{ total: number }>(
        `select sum(total)::int as total from metric_points where metric = 'requests' and project_id = $1`,
        [service.project],
      );
      return (row?.total ?? 0) >= total;
    });
    const lines = (await application.get('/logs?source=router&limit=5')).data as { message: string }[];
    expect(lines[0]?.message).toMatch(/^GET \/ 200 /);
  }, 240_000);

  test('a challenge and a certificate that one process has stored are served by all', async () => {
    const { host } = await service.application(site('safe'));
    const token = createHash('sha256').update('token').digest('base64url');
    const { database, secrets } = service.platform;
    await service.sql(`insert into certificates (id) values ($1)`, [host]);
    await database.transaction((sql) => publishChallenge(sql, host, token, `${token}.thumbprint`));
    const { chain, key } = sealedCertificate(secrets, host, makeCertificate(host));
    await service.sql(`update certificates set chain = $2, key = $3 where id = $1`, [host, chain, key]);
    const place = path.posix.join('/.well-known/acme-challenge', token);
    const expected = new X509Certificate(chain).fingerprint256;
    for (const { http: port, https } of replicas) {
      expect(await visit(port, host, place)).toEqual({ status: 200, body: `${token}.thumbprint` });
      expect(await certificateAt(https, host)).toBe(expected);
    }
  }, 60_000);

  test('one that is killed takes nothing along: the other serves, also while the control plane is away', async () => {
    const application = await service.application(site('here'));
    await application.deploy();
    const [first, second] = replicas as [Replica, Replica];
    await waitFor('its route', async () => (await visit(second.http, application.host)).status === 200);
    first.program.signal('SIGKILL');
    await first.program.ended;
    expect((await visit(second.http, application.host)).body).toBe('here');
    second.program.signal('SIGTERM');
    expect([await second.program.ended, second.program.err()]).toEqual([0, '']);
  }, 120_000);
});
