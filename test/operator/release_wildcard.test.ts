/** @tier heavy @quarter 1 @covers tools/release server/setup */
// From a bare Debian 13 to an application at https://….apps.example.com in two commands: the release, then the domain,
// with one certificate for all applications. The authority asks the name server of the platform; the zone is elsewhere.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bootDebian, obstacleToBoot, type Machine } from '../support/releases/debian';
import { ADDRESS, bringRelease, INTERNET_PROGRAMS, openInternet, type Internet } from '../support/releases/internet';
import { releaseOfToday } from '../support/releases/release';
import { hasProgram } from '../support/runner/has_program';
import { named, needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

jest.setTimeout(1_800_000);
const PROGRAMS = ['debootstrap', 'systemd-nspawn', 'nsenter', 'flock', 'git', ...INTERNET_PROGRAMS];
const obstacle = process.getuid?.() !== 0 ? 'root' : PROGRAMS.every(hasProgram) ? obstacleToBoot('trixie') : null;
const it = obstacle === null ? needs(...PROGRAMS).test : (named(test.skip, ` (needs: ${obstacle})`) as jest.It);

const NAMES = ['platform', 's3', 'registry', 'mail', '*.apps', 'ns1.dns'];
const RECORDS = [
  ...NAMES.map((name) => `${name} IN A ${ADDRESS}`),
  ...['dns', '_acme-challenge.apps'].map((name) => `${name} IN NS ns1.dns`),
];

let home: string;
let machine: Machine | undefined;
let internet: Internet | undefined;
beforeAll(() => (home = mkdtempSync(path.join(tmpdir(), 'wildcard-'))));
afterAll(async () => {
  internet?.close();
  await machine?.remove();
  rmSync(home, { recursive: true, force: true });
});

it('two commands and the records of DNS bring one certificate for all applications', async () => {
  const release = await releaseOfToday();
  machine = await bootDebian(home, 'wildcard', 'trixie', 'own');
  internet = await openInternet(machine, home, RECORDS);
  await bringRelease(machine, release, internet.roots);
  const { run } = machine;
  const [at, marks] = [Date.now(), [] as string[]];
  const mark = (what: string): unknown => marks.push(`${what} ${Math.round((Date.now() - at) / 1000)} s`);
  await run('release/install.sh');
  mark('installed after');
  const told = await run(
    `platform setup --domain example.com --ip ${ADDRESS} --name-server --email ops@example.com \\
      --acme-directory ${internet.directory} --acme-ca /root/roots.pem`,
  ).catch(withJournal);
  expect(told).toContain('_acme-challenge.apps.example.com is delegated to ns1.dns.example.com.');
  expect(told).toContain('The installation has its domain.');
  expect(await pageOf('platform.example.com')).toContain('<!doctype html>');
  mark('dashboard');
  const host = (await run(DEPLOY).catch(withJournal)).trim().split('\n').at(-1) as string;
  expect(host).toMatch(/^shop-\w+\.apps\.example\.com$/);
  await waitFor('the application', () => pageOf(host).then(Boolean, () => false), 120_000).catch(withJournal);
  mark('application');
  const client = `openssl s_client -connect ${ADDRESS}:443 -servername ${host} </dev/null 2>/dev/null`;
  expect(await internet.call('sh', '-c', `${client} | openssl x509 -noout -ext subjectAltName`)).toContain(
    'DNS:*.apps.example.com',
  );
  // The service is the one that setup has started.
  expect(await run('systemctl show -p NRestarts --value platform')).toBe('0\n');
  console.info(marks.join(', '));
});

/** As a client sees it that trusts the root of the authority alone. */
async function pageOf(host: string): Promise<string> {
  const roots = path.join(machine!.root, 'root/roots.pem');
  const words = ['-sf', '-H', 'Accept: text/html', '--cacert', roots, '--resolve', `${host}:443:${ADDRESS}`];
  return internet!.call('curl', ...words, `https://${host}/`);
}

async function withJournal(error: Error): Promise<never> {
  throw new Error(`${error.message}\n${await machine!.run('journalctl -u platform -o cat | tail -60')}`);
}

/** Deploys an application by the name of the platform, and prints the host name of the application. */
const DEPLOY = `NODE_EXTRA_CA_CERTS=/root/roots.pem /opt/platform/current/bin/node -e '
  const { key, project_id } = JSON.parse(require("node:fs").readFileSync("/var/lib/platform-api/first-key.json"));
  const headers = { authorization: "Bearer " + key, "x-svc-project": project_id, "content-type": "application/json" };
  const post = (path, body, more) => fetch("https://platform.example.com" + path,
    { headers: { ...headers, ...more }, method: "POST", body: JSON.stringify(body) }).then((answer) => answer.json());
  post("/v2/applications", { name: "shop", preset: "node-web" }).then(async ({ id, default_hostname }) => {
    console.log(JSON.stringify(await post("/v2/applications/" + id + "/deployments", {}, { prefer: "wait=60" })));
    console.log(default_hostname);
  })'`;
