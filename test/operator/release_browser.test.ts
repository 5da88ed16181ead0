/** @tier heavy @quarter 1 @covers server/installation clients/dashboard/src/pages/installation */
// From a bare Debian 13 to HTTPS in the browser alone: the release is installed, and the page does the rest, with one
// certificate for all applications. The browser trusts the root of the authority, and nothing else.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  closeBrowser,
  fileNeedsChromium,
  openWindow,
  settled,
  type Page,
  type Window,
} from '../support/dashboard/chromium';
import { bootDebian, obstacleToBoot, type Machine } from '../support/releases/debian';
import { ADDRESS, bringRelease, INTERNET_PROGRAMS, openInternet, type Internet } from '../support/releases/internet';
import { releaseOfToday } from '../support/releases/release';
import { hasProgram } from '../support/runner/has_program';
import { named, needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

fileNeedsChromium();
jest.setTimeout(1_800_000);
const PROGRAMS = ['debootstrap', 'systemd-nspawn', 'nsenter', 'flock', 'git', 'certutil', ...INTERNET_PROGRAMS];
const obstacle = process.getuid?.() !== 0 ? 'root' : PROGRAMS.every(hasProgram) ? obstacleToBoot('trixie') : null;
const it = obstacle === null ? needs(...PROGRAMS).test : (named(test.skip, ` (needs: ${obstacle})`) as jest.It);

const NAMES = ['platform', 's3', 'registry', 'mail', '*.apps', 'ns1.dns'];
const RECORDS = [
  ...NAMES.map((name) => `${name} IN A ${ADDRESS}`),
  ...['dns', '_acme-challenge.apps'].map((name) => `${name} IN NS ns1.dns`),
];
const PERSON = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'correct horse battery' };
const HERE = 'http://127.0.0.1:8080';
const THERE = 'https://platform.example.com';
const CHROMIUM = process.env.CHROMIUM;

let home: string;
let machine: Machine | undefined;
let internet: Internet | undefined;
beforeAll(() => (home = mkdtempSync(path.join(tmpdir(), 'setup-'))));
afterAll(async () => {
  await closeBrowser();
  if (CHROMIUM === undefined) delete process.env.CHROMIUM;
  internet?.close();
  await machine?.remove();
  rmSync(home, { recursive: true, force: true });
});

/** A browser in the network of the machine, which trusts the authority as well. */
async function openBrowser({ leader }: Machine): Promise<Window> {
  const store = path.join(home, '.pki/nssdb');
  const root = path.join(home, 'root.pem');
  mkdirSync(store, { recursive: true });
  writeFileSync(root, await internet!.call('curl', '-sk', 'https://127.0.0.1:15000/roots/0'));
  execFileSync('certutil', ['-N', '--empty-password', '-d', `sql:${store}`]);
  execFileSync('certutil', ['-A', '-n', 'authority', '-t', 'C,,', '-i', root, '-d', `sql:${store}`]);
  const program = path.join(home, 'chromium');
  const command = `nsenter --target ${leader} --net env HOME=${home} ${CHROMIUM ?? '/usr/bin/chromium'}`;
  writeFileSync(program, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
  process.env.CHROMIUM = program;
  const window = await openWindow({ url: HERE });
  window.page.setDefaultTimeout(300_000);
  return window;
}

/** While the service restarts, nobody answers. */
const reload = (page: Page): Promise<unknown> =>
  waitFor(
    'the page',
    () =>
      page.reload().then(
        () => true,
        () => false,
      ),
    60_000,
  );

it('the page gives the installation its domain, also when it is reloaded meanwhile', async () => {
  const release = await releaseOfToday();
  machine = await bootDebian(home, 'browser', 'trixie', 'own');
  internet = await openInternet(machine, home, RECORDS);
  const acme = [`ACME_DIRECTORY=${internet.directory}`, 'ACME_CA_FILE=/root/roots.pem'];
  await bringRelease(machine, release, internet.roots, acme);
  await machine.run('release/install.sh');
  const { page } = await openBrowser(machine);
  const first = readFileSync(path.join(machine.root, 'var/lib/platform-api/first-key.json'), 'utf8');
  await page.goto((JSON.parse(first) as { setup_url: string }).setup_url);
  await page.getByLabel('Your name').fill(PERSON.name);
  await page.getByLabel('E-mail address').fill(PERSON.email);
  await page.getByLabel('Password').fill(PERSON.password);
  await page.getByRole('button', { name: /Set password/ }).click();
  await page.waitForURL(`${HERE}/`);

  await page.goto('/installation/domain');
  await page.getByLabel('Domain', { exact: true }).fill('example.com');
  await page.getByText('More', { exact: true }).click();
  await page.getByLabel('Public addresses').fill(ADDRESS);
  await page.getByLabel('One certificate for all applications').check();
  await page.getByRole('button', { name: 'Show what it needs' }).click();
  await page.getByText('_acme-challenge.apps.example.com is delegated to ns1.dns.example.com.').waitFor();
  await page.getByRole('button', { name: `Set up ${THERE}` }).click();
  await page.getByLabel('Your password').fill(PERSON.password);
  await page.getByRole('button', { name: 'Set up', exact: true }).click();
  await page.getByRole('heading', { name: `Setting up ${THERE}` }).waitFor();
  const isThere = page.waitForURL(new RegExp(`^${THERE}/`));
  // Before the service restarts, and when the session has ended with the address of before.
  for (const line of ['platform.example.com leads to', 'Waiting for the certificate of']) {
    await Promise.race([page.getByText(line).waitFor(), isThere]);
    await reload(page);
  }
  await isThere;

  await page.getByLabel('E-mail address').fill(PERSON.email);
  await page.getByLabel('Password').fill(PERSON.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL(`${THERE}/installation`);
  await settled(page);
  await page.locator('tr', { hasText: '*.apps.example.com' }).getByText('issued').waitFor();
});
