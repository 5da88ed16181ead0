/** @tier heavy @quarter 2 @covers server/setup/switch_over.ts server/setup/set_up.ts server/setup/follow_names.ts */
// `platform setup` switches a running service to its names, and back where that does not work.
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { loadConfig } from '../../core/config';
import { createLog } from '../../core/log/log';
import { openPlatform } from '../../server/platform/platform';
import { proofOf } from '../../server/platform/setup_proof';
import type { ControlDatabase } from '../../db/control_database';
import { followAddress, moveDefaultNames } from '../../server/setup/follow_names';
import { apiProblem, httpsProblem } from '../../server/setup/https_ready';
import type { Choice } from '../../server/setup/plan';
import { openSettingsFile } from '../../server/setup/settings_file';
import { readSettings } from '../../server/setup/settings_text';
import { setUpInstallation, type Parts } from '../../server/setup/set_up';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { makeSignedCertificate } from '../support/ingress/ingress_certificate';
import { freePort } from '../support/processes/free_port';
import { startSetupService, type SetupService } from '../support/processes/setup_service';
import { needs } from '../support/runner/programs';

jest.setTimeout(180_000);
const HERE = '127.0.0.1';

let service: SetupService;
let dns: DnsServer;
let authority: http.Server;
let choice: Choice;
const reported: string[] = [];

beforeAll(async () => {
  service = await startSetupService();
  dns = await startDnsServer({ 'platform.example.com A': [HERE], '*.apps.example.com A': [HERE] });
  authority = http.createServer((_, response) => response.end('{"newOrder": "http://127.0.0.1:1/order"}'));
  await new Promise<void>((resolve) => authority.listen(0, HERE, resolve));
  choice = {
    ...{ domain: 'example.com', email: null, addresses: [HERE], acmeCaFile: null, nameServer: false, listen: [] },
    acmeDirectory: `http://${HERE}:${(authority.address() as AddressInfo).port}/directory`,
    ports: { http: await freePort(), tls: await freePort() },
  };
});
afterAll(async () => {
  await service?.close();
  await dns?.close();
  authority?.close();
});

function run(more: Partial<Parts> = {}): ReturnType<typeof setUpInstallation> {
  reported.length = 0;
  const parts: Parts = {
    ...{ settings: openSettingsFile(service.envFile), service, environment: {}, resolvers: [dns.address] },
    ...{
      delegation: async () => null,
      timeSources: [],
      interfaces: [HERE],
      proof: () => null,
      recordsWithinMs: 0,
      httpsWithinMs: 3_000,
    },
    move: (settings) => onDatabase((sql) => moveDefaultNames(sql, settings)),
    follow: (settings, now) => onDatabase((sql) => followAddress(sql, settings, now)),
    report: (line) => void reported.push(line),
    signal: new AbortController().signal,
    certificateError: async () => 'The certificate authority accepts no more requests at the moment.',
    ...more,
  };
  return setUpInstallation(choice, { checkOnly: false, force: false }, parts);
}

async function onDatabase<T>(work: (sql: ControlDatabase) => Promise<T>): Promise<T> {
  const platform = await openPlatform(loadConfig(service.settings()), createLog('silent'));
  try {
    return await work(platform.database);
  } finally {
    await platform.close();
  }
}

/* oxlint-disable-next-line typescript/no-explicit-any -- what the service sends */
async function call(method: string, target: string, body?: object): Promise<any> {
  const { key, project_id } = service.first();
  const answer = await fetch(service.url + target, {
    method,
    headers: {
      ...{ Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' },
    },
    body: body && JSON.stringify(body),
  });
  return answer.json();
}

const text = (): string => readFileSync(service.envFile, 'utf8');
const before = (): string => `${service.envFile}.before-setup`;

test('an authority that refuses: the settings of before are in force again, with its reason', async () => {
  const made = await call('POST', '/v2/applications', { name: 'blog', preset: 'node-web' });
  const [own, started] = [text(), service.restarts];
  await expect(run()).rejects.toThrow(
    'The certificate authority accepts no more requests at the moment. The settings of before are in force again.',
  );
  expect([text(), existsSync(before()), service.restarts - started]).toEqual([own, false, 2]);
  expect(await apiProblem(loadConfig(readSettings(own)))).toBeNull();
  expect(reported).toContain('1 applications, previews and CDN zones have names below apps.example.com now.');
  expect(await call('GET', `/v2/applications/${made.id}`)).toMatchObject({ default_hostname: made.default_hostname });
});

test('an interruption while it waits for the certificate goes back, too', async () => {
  const own = text();
  const interrupted = new AbortController();
  const running = run({
    signal: interrupted.signal,
    httpsWithinMs: 60_000,
    report: (line) =>
      void (line.startsWith('Waiting for the certificate') && setTimeout(() => interrupted.abort(), 100)),
  });
  await expect(running).rejects.toThrow('Interrupted. The settings of before are in force again.');
  expect(text()).toBe(own);
});

test('a file that cannot be written changes nothing', async () => {
  const own = text();
  const [settings, started] = [openSettingsFile(service.envFile), service.restarts];
  const unable = { ...settings, write: () => openSettingsFile('/dev/full/platform.env').write('') };
  await expect(run({ settings: unable })).rejects.toThrow('Nothing was changed.');
  expect([text(), service.restarts]).toEqual([own, started]);
});

const tls = needs('openssl');

tls.test('with a certificate it is switched; names of before follow; again is no change', async () => {
  const application = await call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' });
  expect(application.default_hostname).toMatch(/^shop-\w+\.localhost$/);
  const { chain, key, ca } = makeSignedCertificate('platform.example.com');
  const file = (name: string): string => path.join(service.directory, name);
  for (const [name, content] of Object.entries({ 'cert.pem': chain, 'key.pem': key, 'ca.pem': ca }))
    writeFileSync(file(name), content);
  const own = `${text()}INGRESS_CERT_FILE=${file('cert.pem')}\nINGRESS_KEY_FILE=${file('key.pem')}\n`;
  writeFileSync(service.envFile, own);
  choice = { ...choice, acmeCaFile: file('ca.pem') };

  // A call that was killed behind the write, and one that goes on from there.
  const killed = new Error('killed');
  const dying = { ...service, restart: () => Promise.reject(killed) };
  const trial = openSettingsFile(service.envFile);
  const unable = { ...trial, restore: () => Promise.reject(killed) };
  await expect(run({ settings: unable, service: dying })).rejects.toThrow('killed');
  expect([existsSync(before()), readFileSync(before(), 'utf8')]).toEqual([true, own]);
  expect((await call('GET', '/v2/applications')).data).toBeDefined();

  expect(await run({ httpsWithinMs: 60_000 })).toBe('set_up');
  expect([existsSync(before()), statSync(service.envFile).mode & 0o777]).toEqual([false, 0o600]);
  expect(text()).toContain('# Of the owner\n');
  const now = loadConfig(readSettings(text()));
  expect(now.baseUrl).toBe(`https://platform.example.com:${choice.ports.tls}`);
  expect(await httpsProblem(now, 'platform.example.com', ca)).toBeNull();
  const moved = await call('GET', `/v2/applications/${application.id}`);
  expect(moved.default_hostname).toBe(application.default_hostname.replace('localhost', 'apps.example.com'));
  expect(service.first().setup_url).toContain(`${now.baseUrl}/welcome#`);

  const [written, started] = [text(), service.restarts];
  expect(await run()).toBe('unchanged');
  expect([text(), service.restarts]).toEqual([written, started]);
});

tls.test('the names of a running ingress are checked by its own answer', async () => {
  const { secrets, close } = await openPlatform(loadConfig(service.settings()), createLog('silent'));
  await close();
  const config = loadConfig(readSettings(text()));
  writeFileSync(before(), text()); // as if on trial, which is checked again
  await expect(run()).rejects.toThrow('another installation of the platform answers.');
  rmSync(before());
  expect(config.ingressPort).toBe(choice.ports.http);
  expect(
    await setUpInstallation(
      choice,
      { checkOnly: true, force: false },
      {
        ...{ settings: openSettingsFile(service.envFile), service, environment: {}, resolvers: [dns.address] },
        ...{ delegation: async () => null, timeSources: [], interfaces: [HERE], recordsWithinMs: 0 },
        ...{ proof: (token) => proofOf(secrets, token) },
        ...{ move: async () => 0, follow: async () => [], report: () => {}, signal: new AbortController().signal },
        certificateError: async () => null,
      },
    ),
  ).toBe('checked');
});
