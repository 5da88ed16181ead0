/** @tier heavy @quarter 1 @covers server/agents/own_certificates.ts server/operator/doctor_certificates.ts */
// What was ordered for an installation with names of every kind, as programs of others see it that trust the root of
// the authority alone: curl, openssl and a browser. And as its operator sees it.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OWN, openPlatformSite, type PlatformSite } from '../support/ingress/platform_site';
import { startProgram } from '../support/processes/program';
import { fileNeeds, needs } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

jest.setTimeout(180_000);
fileNeeds('pebble', 'openssl', 'curl');

const run = promisify(execFile);
const CONSOLE = OWN[0] as string;
const folder = mkdtempSync(path.join(tmpdir(), 'certificate-clients-'));
const rootFile = path.join(folder, 'root.pem');
let site: PlatformSite;
let service: TestService;
let served: Record<string, string>;

beforeAll(async () => {
  site = await openPlatformSite(90 * 86_400);
  writeFileSync(rootFile, await site.pebble.root());
  service = await startService({ worker: true, settings: site.settings });
  served = await site.furnish((method, route, options) => service.call(method, route, options));
  await waitFor(
    'the certificates',
    async () => {
      const rows = await service.sql('select 1 from certificates where chain is not null');
      return rows.length === 5;
    },
    120_000,
  );
});
afterAll(async () => {
  await service?.close();
  await site?.close();
  rmSync(folder, { recursive: true, force: true });
});

const curl = async (hostname: string, route: string): Promise<string> => {
  const at = `${hostname}:${site.tlsPort}`;
  const options = ['-sS', '--cacert', rootFile, '--resolve', `${at}:127.0.0.1`, '-w', '\n%{http_code}'];
  return (await run('curl', [...options, `https://${at}${route}`])).stdout;
};

test('curl reaches the API by its own name, and an application, a CDN zone and a custom domain by theirs', async () => {
  expect(await curl(CONSOLE, '/healthz')).toMatch(/"status":"ok"[^]*\n200$/);
  for (const name of Object.values(served)) expect(await curl(name, '/')).toMatch(/\n\d{3}$/);
});

test('openssl verifies each name, and the chain that comes with it', async () => {
  for (const name of [CONSOLE, ...Object.values(served)]) {
    const words = ['s_client', '-connect', `127.0.0.1:${site.tlsPort}`, '-servername', name, '-verify_hostname', name];
    const child = run('openssl', [...words, '-CAfile', rootFile, '-verify_return_error']);
    child.child.stdin?.end();
    expect((await child).stdout).toContain('Verify return code: 0 (ok)');
  }
});

test('an application is covered by the wildcard, and has no certificate of its own', async () => {
  const { data } = await service.graphql(
    '{ listApplications(limit: 1) { data { url certificate { status error } } } }',
  );
  expect(data.listApplications.data).toEqual([
    { url: expect.stringMatching(/^https:/), certificate: { status: 'issued', error: null } },
  ]);
  expect(await service.sql('select chain, reason from certificates where id = $1', [served.application])).toEqual([
    { chain: null, reason: null },
  ]);
});

test('a name that is not ours gets no certificate by asking for it', async () => {
  const before = site.authority.placed;
  await expect(site.serial('stranger.example.org')).rejects.toThrow();
  expect(await service.sql(`select 1 from certificates where id = 'stranger.example.org'`)).toEqual([]);
  expect(site.authority.placed).toBe(before);
});

needs('chromium', 'certutil').test('a browser that trusts the root opens a page without a warning', async () => {
  const store = path.join(folder, '.pki/nssdb');
  mkdirSync(store, { recursive: true });
  await run('certutil', ['-N', '--empty-password', '-d', `sql:${store}`]);
  await run('certutil', ['-A', '-n', 'pebble', '-t', 'C,,', '-i', rootFile, '-d', `sql:${store}`]);
  const dump = (home: string): Promise<{ stdout: string }> =>
    run(
      'chromium',
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--dump-dom', `--user-data-dir=${home}/profile`],
        ...['--host-resolver-rules=MAP * 127.0.0.1', `https://${CONSOLE}:${site.tlsPort}/healthz`],
      ],
      { env: { ...process.env, HOME: home }, timeout: 60_000 },
    );
  expect((await dump(folder)).stdout).toContain('"status":"ok"');
  const stranger = path.join(folder, 'stranger');
  mkdirSync(stranger);
  const { stdout } = await dump(stranger).catch((error: { stdout: string }) => error);
  expect(stdout).not.toContain('"status":"ok"');
});

test('metrics and doctor name the certificates of the platform, and count others', async () => {
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  for (const name of [...OWN, '*.apps.example.com'])
    expect(metrics).toMatch(
      new RegExp(`platform_certificate_expiry_seconds\\{name="${name.replaceAll(/[.*]/g, '\\$&')}"\\} 7\\d{6}`),
    );
  expect(metrics).toContain('platform_certificates{kind="domain",state="good"} 1');
  const { databaseUrl } = service.platform;
  const doctor = startProgram(
    { DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: service.dataDir, ...site.settings },
    { entry: 'server/operator/main.ts', words: ['doctor', '--json'] },
  );
  await doctor.ended;
  const found = (JSON.parse(doctor.out()) as { data: object[] }).data;
  expect(found).toContainEqual({
    check: 'certificate authority',
    status: 'ok',
    detail: `${site.authority.directory} answers, and its clock agrees with that of this machine`,
  });
  expect(found).toContainEqual({
    check: 'certificates',
    status: 'ok',
    detail: 'valid for *.apps.example.com, console.example.com, smtp.example.com, and for 2 names of projects',
  });
});
