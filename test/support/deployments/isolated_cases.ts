// Whole projects on networks of their own: built, released with a database, served under all of their host names, with
// a preview and a bucket, and what another project reaches of that.
import { connect } from 'node:net';
import { hasWayOut } from '../../../drivers/network/open';
import { openDatabaseWorkshop, postgresqlVersions, type DatabaseWorkshop } from '../databases/database_hall';
import { makeApplication, startDeployService, visitHost, type DeployService, type TestApplication } from './deploy';
import { startDnsServer, type DnsServer } from '../dns/dns_server';
import { domainsOf, INGRESS } from '../dns/domains';
import { freePort } from '../processes/free_port';
import { HOSTILE_CALLS, HOSTILE_CALLS_ANSWERED } from '../contract/hostile_calls';
import { lock, webCommand } from '../git/repositories';
import { waitFor } from '../wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */

// It asks the database whether it speaks TLS, which needs no driver.
const ASK = `
const ask = (port, host) => new Promise((resolve) => {
  const socket = require('net').connect(port, host);
  socket.on('connect', () => socket.write(Buffer.from('0000000804d2162f', 'hex')));
  socket.on('data', (bytes) => (resolve(String(bytes)), socket.destroy()));
  socket.on('error', (error) => resolve(error.code));
  socket.on('close', () => resolve('closed'));
});
const calls = () => require('child_process').execFileSync('perl', ['calls.pl'], { encoding: 'utf8' });
const database = () => ask(process.env.DATABASE_PORT, process.env.DATABASE_HOST);
`;

const SERVER = `${ASK}
let taken = '';
const store = (method, body) => fetch(process.env[method + '_URL'], { method, body }).then((answer) => answer.text());
const pages = {
  '/database': database,
  '/bucket': async () => (await store('PUT', 'kept')) + (await store('GET')),
  '/calls': async () => calls(),
  '/bind': () => new Promise((resolve) => {
    const server = require('net').createServer((socket) => socket.on('data', (bytes) => (taken += bytes)).write('N'));
    server.listen(Number(process.env.OTHER_PORTS.split(',')[0]), '0.0.0.0', () => resolve('listening'));
  }),
  '/taken': async () => 'taken: ' + taken,
  '/ports': async () =>
    (await Promise.all(process.env.OTHER_PORTS.split(',').map((port) => ask(port, '127.0.0.1')))).join(','),
};
require('http').createServer(async (request, response) => {
  const page = pages[request.url] || (() => 'VERSION');
  response.end(await Promise.resolve(page()).catch((error) => String(error.cause || error)));
}).listen(process.env.PORT, '127.0.0.1');
`;

const RELEASE = `${ASK}
console.log(calls());
database().then((answer) => console.log('the database says ' + answer));
`;

const files = (version: string): Record<string, string> => ({
  ...webCommand('node server.js'),
  Procfile: 'web: node server.js\nrelease: node release.js\n',
  'package.json': JSON.stringify({ name: 'app', version: '1.0.0', scripts: { build: 'perl calls.pl' } }),
  'package-lock.json': lock('app'),
  'server.js': SERVER.replace('VERSION', version),
  'release.js': RELEASE,
  'calls.pl': HOSTILE_CALLS,
});

export function isolatedCases(block: string): void {
  let service: DeployService;
  let dns: DnsServer;
  let place: DatabaseWorkshop;
  beforeAll(async () => {
    dns = await startDnsServer();
    place = openDatabaseWorkshop();
    service = await startDeployService({
      ...INGRESS,
      ...place.settings,
      ...{ NETWORK: 'isolated', NETWORK_BLOCK: block, S3_PORT: String(await freePort()) },
      ...{ DNS_RESOLVERS: dns.address, INGRESS_IPS: '192.0.2.10' },
    });
  }, 60_000);
  afterAll(async () => {
    for (const { id } of (await service?.sql<{ id: string }>('select id from databases')) ?? [])
      await service.call('DELETE', `/v2/databases/${id}`);
    await service?.close();
    await dns?.close();
    place?.clear();
  }, 120_000);

  const expectStatus = async (status: number, method: string, path: string, body?: object): Promise<any> => {
    const answer = await service.call(method, path, body ? { body } : {});
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.body;
  };

  test('an application with a database and a bucket is built, released and served in its network', async () => {
    const { data } = await expectStatus(200, 'GET', '/v2/regions');
    expect(data[0].network).toEqual({ isolation: 'project', egress: await hasWayOut() });
    expect(data[0].file_isolation).toBe('sandbox');

    const application = await service.application(files('v1'));
    const database = await newDatabase(application.id);
    await newBucket(application.id);
    const deployment = await application.deploy();
    const log = await application.log(deployment.id);
    if (deployment.status !== 'active') throw new Error(log.join('\n'));
    expect(log).toContain('the database says S');
    await reachesNoKernel(application, log);
    expect(await application.visit()).toEqual({ status: 200, body: 'v1' });
    expect((await application.visit('/database')).body).toBe('S');
    expect((await application.visit('/bucket')).body).toBe('kept');

    await servedAtDomain(application.id);
    await servedAsPreview(application);
    await refusedToOthers(database, application);

    for (const { id } of await service.sql<{ id: string }>('select id from database_attachments'))
      await expectStatus(204, 'DELETE', `/v2/databases/${database.id}/attachments/${id}`);
    await service.clear();
    await expectStatus(204, 'DELETE', `/v2/databases/${database.id}`);
    await waitFor('the end of the database', async () => {
      return (await service.sql('select 1 from databases')).length === 0;
    });
  }, 240_000);

  async function newDatabase(application: string): Promise<{ id: string; port: number }> {
    const made = await expectStatus(201, 'POST', '/v2/databases', {
      ...{ name: 'main', engine: 'postgresql', engine_version: String(postgresqlVersions()[0]) },
    });
    const found = await waitFor('the database', async () => {
      const body = await expectStatus(200, 'GET', `/v2/databases/${made.id}`);
      if (body.status === 'failed') throw new Error(JSON.stringify(body));
      return body.status === 'available' && body;
    });
    await expectStatus(201, 'POST', `/v2/databases/${made.id}/attachments`, { application_id: application });
    const [row] = await service.sql<{ port: number }>('select port from databases');
    return { id: found.id, port: row!.port };
  }

  // The application gets addresses that are signed for one object.
  async function newBucket(application: string): Promise<void> {
    const bucket = await expectStatus(201, 'POST', '/v2/buckets', { name: `isolated-${process.pid}` });
    for (const method of ['PUT', 'GET']) {
      const { url } = await expectStatus(200, 'POST', `/v2/buckets/${bucket.id}/presign`, { key: 'word', method });
      expect(new URL(url).hostname).toBe('127.0.0.1');
      await setVariable(service.call, application, `${method}_URL`, url);
    }
  }

  async function servedAtDomain(application: string): Promise<void> {
    const domains = domainsOf(service, dns);
    const domain = await domains.added('www.isolated.example', application);
    domain.dns_instructions.forEach(domains.obey);
    await domains.verify(domain);
    await waitFor('the domain', async () => {
      const { status, body } = await visitHost(service.platform.config.ingressPort, 'www.isolated.example');
      return status === 200 && body === 'v1';
    });
  }

  async function servedAsPreview(application: { id: string; name: string }): Promise<void> {
    service.git.commit(application.name, files('v2'), { branch: 'next' });
    const path = `/v2/applications/${application.id}/previews`;
    const { id } = await expectStatus(201, 'POST', path, { branch: 'next' });
    const host = await waitFor('the preview', async () => {
      const found = await expectStatus(200, 'GET', `${path}/${id}`);
      if (found.status === 'failed') throw new Error(JSON.stringify(found));
      return new URL(found.url ?? 'http://none').hostname;
    });
    await waitFor('its answer', async () => {
      const { body } = await visitHost(service.platform.config.ingressPort, host);
      return body === 'v2';
    });
    await expectStatus(204, 'DELETE', `${path}/${id}`);
  }

  // By build, release command and instance.
  async function reachesNoKernel(application: TestApplication, log: string[]): Promise<void> {
    if (process.arch !== 'x64') return;
    expect(log.filter((line) => HOSTILE_CALLS_ANSWERED.includes(line))).toEqual([
      ...[...HOSTILE_CALLS_ANSWERED, ...HOSTILE_CALLS_ANSWERED],
    ]);
    expect((await application.visit('/calls')).body.trim().split('\n')).toEqual(HOSTILE_CALLS_ANSWERED);
  }

  // In the network of another project there is neither the port of the database, nor those of the platform: the API,
  // the admin port and its own database.
  async function refusedToOthers({ id, port }: { id: string; port: number }, victim: TestApplication): Promise<void> {
    const own = [service.url, service.adminUrl, service.platform.databaseUrl].map((url) => Number(new URL(url).port));
    const ports = [port, ...own];
    expect(ports.filter((one) => one > 0)).toHaveLength(4);
    const { id: project, key } = await service.newProject();
    const call: DeployService['call'] = (method, path, options) =>
      service.call(method, path, { key, project, ...options });
    const application = await makeApplication(
      { ...service, call },
      webCommand('node server.js', { 'server.js': SERVER }),
      {},
    );
    await setVariable(call, application.id, 'OTHER_PORTS', ports.join(','));
    expect((await application.deploy()).status).toBe('active');
    expect(await application.visit('/ports')).toEqual({ status: 200, body: ports.map(() => 'ECONNREFUSED').join(',') });
    expect((await application.visit('/bind')).body).toBe('listening');
    await expectStatus(202, 'POST', `/v2/databases/${id}/restart`, {});
    const answers = new Set<string>();
    await waitFor('the restart', async () => {
      answers.add((await victim.visit('/database')).body).add(await tlsReplyOnHost(port));
      return (await expectStatus(200, 'GET', `/v2/databases/${id}`)).status === 'available';
    });
    expect([...answers].filter((one) => !['S', 'closed', 'ECONNREFUSED', 'ECONNRESET'].includes(one))).toEqual([]);
    expect((await application.visit('/taken')).body).toBe('taken: ');
    expect((await call('DELETE', `/v2/applications/${application.id}`)).status).toBe(204);
  }
}

/** What the server at this port of the host replies to PostgreSQL's request for TLS, or why it does not. */
function tlsReplyOnHost(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => void socket.write(Buffer.from('0000000804d2162f', 'hex')));
    socket.on('data', (bytes) => (resolve(String(bytes)), socket.destroy()));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    socket.on('close', () => resolve('closed'));
  });
}

async function setVariable(
  call: DeployService['call'],
  application: string,
  name: string,
  value: string,
): Promise<void> {
  const { status, text } = await call('PUT', `/v2/applications/${application}/env/${name}`, { body: { value } });
  if (status >= 300) throw new Error(text);
}
