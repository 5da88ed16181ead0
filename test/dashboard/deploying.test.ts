/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages clients/dashboard/src/source jobs/deployments */
// Deploying without the API: a folder of this computer, a commit, the same again; and how long each step took.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startDeployService, visitHost, type DeployService, type TestApplication } from '../support/deployments/deploy';
import {
  dashboardOf,
  dropOn,
  newPerson,
  screenshot,
  settled,
  violations,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';
import { nodeApp } from '../support/git/repositories';

let service: DeployService;
let application: TestApplication;
let window: Window;
let peer: GitPeer;
const folder = path.join(mkdtempSync(path.join(tmpdir(), 'dashboard-')), 'corner-shop');

const SERVER = `const { existsSync } = require('fs');
process.on('SIGTERM', () => process.exit());
require('http').createServer((_, answer) => answer.end([process.env.COLOUR, process.env.TOKEN, process.argv[2],
  ['.env', 'ignored.txt', 'sub/deep.log', 'süß.txt', 'node_modules'].filter((name) => existsSync(name))].join(' ')))
  .listen(process.env.PORT);`;

dashboardOf(
  async () => {
    peer = await startGitPeer('gitea');
    peer.repositories = ['acme/shop', 'acme/lib'].map((full_name, index) => ({
      ...{ id: index + 1, full_name, private: true, default_branch: 'main' },
    }));
    peer.git.makeRepository('acme/shop', { 'index.html': 'of the Git host' });
    service = await startDeployService();
    application = await service.application(nodeApp('one'));
    await newPerson(service, 'owner@example.org', 'owner');
    for (const name of ['app/sub', 'app/node_modules/left', 'docs', 'drafts'])
      mkdirSync(path.join(folder, name), { recursive: true });
    const files: Record<string, string> = {
      '.gitignore': 'ignored.txt\n',
      '.dockerignore': 'docs\n',
      '.svcignore': 'drafts/\n',
      'docs/guide.md': '',
      'drafts/shop.psd': '',
      'app/Procfile': 'web: node server.js\n',
      'app/server.js': SERVER,
      'app/.env': 'TOKEN=of-the-env\n',
      'app/sub/.gitignore': '*.log\n',
      'app/sub/deep.log': '',
      'app/süß.txt': '',
      'app/node_modules/left/pad.js': '',
      'app/ignored.txt': '',
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
    return service;
  },
  (opened) => void (window = opened),
);
afterAll(async () => {
  rmSync(path.dirname(folder), { recursive: true, force: true });
  await peer?.close();
});

/** Does not start without a variable. */
const NEEDY = `if (!process.env.PAYMENT_TOKEN) { console.error('PAYMENT_TOKEN is not set'); process.exit(1); }
${SERVER}`;

const ended = (status: string): Promise<void> =>
  window.page.locator('.headline .status', { hasText: status }).waitFor({ timeout: 50_000 });

test('a folder becomes an application, without its secrets, with its directory, command and variables', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/new?from=upload`);
  await page.getByLabel('Folder', { exact: true }).setInputFiles(folder);
  await page.getByText('is not sent: it has secrets').waitFor();
  expect(await page.locator('.drop').innerText()).toMatch(
    /corner-shop: 7 files\. 5 files left out, by \.gitignore, \.dockerignore and \.svcignore, or/,
  );
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('corner-shop');
  await page.getByRole('button', { name: 'Add its variables of app/.env' }).click();
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name of new variable').fill('COLOUR');
  await page.getByLabel('Value of COLOUR').fill('green');
  await page.getByText('Root directory and commands').click();
  await page.getByLabel('Root directory').fill('/outside');
  await page.getByLabel('Start command').fill('node server.js own');
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-new-folder');
  await page.getByRole('button', { name: 'Create and deploy' }).click();
  // Refused by the API, and mended: the application is not made twice.
  await page.getByText('The application exists.').waitFor();
  await page.getByLabel('Root directory').fill('app');
  await page.getByRole('button', { name: 'Create and deploy' }).click();
  await page.waitForURL(/\/deployments\/dep_/);
  await ended('active');
  const { data } = (await service.call('GET', '/v2/applications?name=corner-shop')).body;
  expect(data).toHaveLength(1);
  const answer = await visitHost(service.platform.config.ingressPort, data[0].default_hostname);
  expect(answer.body).toBe('green of-the-env own süß.txt');
});

test('what was sent by hand breaks with the next folder, and is mended where its variable is set', async () => {
  const { page } = window;
  const needy = path.join(path.dirname(folder), 'needy');
  mkdirSync(path.join(needy, 'app'), { recursive: true });
  writeFileSync(path.join(needy, 'app/server.js'), NEEDY);
  writeFileSync(path.join(needy, 'app/Procfile'), 'web: node server.js\n');
  const dialog = page.getByRole('dialog');
  // It has no other source: its button asks what to deploy.
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  await dialog.waitFor();
  // The button that closes it stands first, and is not where a dialog begins.
  expect(await page.evaluate(`document.activeElement.getAttribute('aria-label')`)).not.toBe('Close');
  await dropOn(page, dialog.locator('.drop'), needy);
  await dialog.getByText('needy: 2 files.').waitFor();
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.getByRole('heading', { name: 'Deployment #2' }).waitFor();
  await ended('failed');
  await page.locator('.notice', { hasText: 'PAYMENT_TOKEN is not set' }).waitFor();
  await page.getByRole('link', { name: 'Environment' }).click();
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name of new variable').fill('PAYMENT_TOKEN');
  await page.getByLabel('Value of PAYMENT_TOKEN').fill('token');
  await page.getByRole('button', { name: 'Review and save' }).click();
  await dialog.getByLabel(/Restart the application/).uncheck();
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'Deploy #2 again' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Deploy #2 again' }).click();
  await page.getByRole('heading', { name: 'Deployment #3' }).waitFor();
  await ended('active');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('deploy corner-shop');
  await page.keyboard.press('Enter');
  await dialog.getByText('The files of #3').click();
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.getByRole('heading', { name: 'Deployment #4' }).waitFor();
  await ended('active');
  expect(await page.getByText(/^Upload, \d+ B$|^Upload, [\d.]+ kB$/).count()).toBe(1);
}, 180_000);

test('a repository of a connected Git host is found by a part of its name, with its branches', async () => {
  const { page } = window;
  const body = { provider: 'gitea', base_url: peer.url, access_token: 'good-token-1' };
  expect((await service.call('POST', '/v2/git_integrations', { body })).status).toBe(201);
  await visit(page, `/projects/${service.project}/new`);
  await page.getByLabel('Where it is').selectOption({ label: 'acme-bot (gitea)' });
  await page.getByLabel('Search for a repository').fill('sho');
  const found = page.getByRole('list', { name: 'Repositories' });
  await found.getByText('acme/lib').waitFor({ state: 'detached' });
  await found.getByText('acme/shop').click();
  expect(await page.getByLabel('Branch').inputValue()).toBe('main');
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('shop');
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-git-host');
  await page.getByRole('button', { name: 'Create and deploy' }).click();
  await page.waitForURL(/\/deployments\/dep_/);
  await ended('active');
});

test('a deployment shows its steps with their seconds, as the API has them', async () => {
  const { page } = window;
  const steps = page.getByRole('list', { name: 'Steps' }).getByRole('listitem');
  expect(await steps.allInnerTexts()).toEqual(
    expect.arrayContaining([expect.stringMatching(/^done\s+Fetch the source\s+(under )?[\d.]+ s$/)]),
  );
  const [, id = '', deployment = ''] = /applications\/(\w+)\/deployments\/(\w+)/.exec(page.url()) ?? [];
  const { body } = await service.call('GET', `/v2/applications/${id}/deployments/${deployment}`);
  const names = body.steps.map(({ name }: { name: string }) => name);
  expect(names.filter((name: string) => !['equip', 'build', 'publish'].includes(name))).toEqual([
    ...['fetch', 'plan', 'release', 'command', 'instances', 'activate'],
  ]);
  for (const [index, step] of body.steps.entries())
    expect(step.finished_at).toBe(body.steps[index + 1]?.started_at ?? body.finished_at);
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-steps');
});

test('a commit is deployed by its first characters, and what failed once more, without the cache', async () => {
  const { page } = window;
  const first = application.push(nodeApp('two'));
  application.push({ Procfile: 'web: node missing.js' });
  await visit(page, `/applications/${application.id}/deployments`);
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Deploy something else' }).click();
  await dialog.getByLabel('Commit').fill(first.slice(0, 8));
  expect(await violations(page)).toEqual([]);
  await screenshot(page, 'try-deploy-dialog');
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.waitForURL(/\/deployments\/dep_/);
  await ended('active');
  expect((await application.visit()).body).toContain('two');
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.getByRole('heading', { name: 'Deployment #2' }).waitFor();
  await ended('failed');
  await page.getByRole('list', { name: 'Steps' }).getByText('failed').waitFor();
  await screenshot(page, 'try-failed');
  await page.getByRole('button', { name: 'Clear the cache and deploy' }).click();
  await page.getByRole('heading', { name: 'Deployment #3' }).waitFor();
  await page.getByText('cleared').waitFor();
  await ended('failed');
});

test('a folder is deployed to an application that has a repository', async () => {
  const { page } = window;
  await visit(page, `/applications/${application.id}/deployments`);
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Deploy something else' }).click();
  await dialog.getByText('A folder or an archive').click();
  await dialog.getByLabel('Folder', { exact: true }).setInputFiles(path.join(folder, 'app'));
  await dialog.getByText('Set its variables on the page Environment.').waitFor();
  await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
  await page.waitForURL(/\/deployments\/dep_/);
  await ended('active');
  await settled(page);
  expect((await application.visit()).body).toContain('süß.txt');
  expect(window.complaints).toEqual([]);
});
