/** @tier heavy @quarter 2 @covers models/bin models/base/bin.ts models/projects/activity */
// Somebody has a stolen credential and does the worst with it. Then one person, with the dashboard alone, has
// everything as it was: rows, files, objects, images, answers, pages, variables and credentials.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  buildDashboard,
  closeBrowser,
  fileNeedsChromium,
  newPerson,
  openWindow,
  settled,
  signIn,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { destroyAll, overwriteAll, type Ask, type Outcomes } from '../support/dashboard/attack';
import { startAttackedProject, type AttackedProject } from '../support/dashboard/attacked_project';
import type { Locator } from '../support/dashboard/playwright';
import { browser, PASSWORD } from '../support/identity/browser';
import { waitFor } from '../support/wait_for';

fileNeedsChromium();
jest.setTimeout(600_000);

let project: AttackedProject;
let window: Window;
let clicks = 0;
beforeAll(async () => {
  buildDashboard();
  project = await startAttackedProject();
  await newPerson(project.service, 'owner@example.org', 'owner');
  await newPerson(project.service, 'colleague@example.org', 'owner');
  await project.service.sql(`update members set owner_since = now() - interval '30 days'`);
  window = await openWindow(project.service);
  await signIn(window, 'owner@example.org');
}, 300_000);
afterAll(async () => {
  await closeBrowser();
  await project?.close();
}, 120_000);

const asker =
  (key: string): Ask =>
  (method, path, body) =>
    project.service.call(method, path, { key, ...(body && { body }) });

async function press(name: string | RegExp, within = window.page.locator('body')): Promise<void> {
  clicks += 1;
  await within.getByRole('button', { name }).first().click();
}

/** Restores what the bin has, from the top; what waits for another one in a second round. */
async function emptyTheBin(): Promise<void> {
  const { page } = window;
  await visit(page, `/projects/${project.service.project}/bin`);
  const buttons = page.getByRole('button', { name: /^Restore/ });
  const failed = new Set<string>();
  for (let left = 60; left > 0; left -= 1) {
    const names = (await buttons.allInnerTexts()).filter((text) => !failed.has(text));
    if (!names.length) break;
    const [name] = names as [string];
    const before = await buttons.count();
    await press(name.replace(/\s+/g, ' ').trim());
    await waitFor('the answer', async () => {
      if ((await buttons.count()) < before) return true;
      return (await page.getByRole('alert').count()) > 0 && failed.add(name);
    });
  }
}

/** Takes back what `who` has changed since, from the top. */
async function undoAll(who: string, since: string): Promise<string[]> {
  const { page } = window;
  await visit(page, `/projects/${project.service.project}/activity`);
  await page.getByLabel('From').fill(since);
  await press('Show');
  const rows = page.locator('tr:has(button)', { hasText: who });
  await rows.first().waitFor();
  const refused = await undoRows(rows);
  const next = page.getByRole('button', { name: 'Next page' });
  while (await next.count()) {
    const first = await page.locator('tbody tr').first().innerText();
    await press('Next page');
    await waitFor('the page', async () => (await page.locator('tbody tr').first().innerText()) !== first);
    refused.push(...(await undoRows(rows)));
  }
  await settled(page);
  return refused;
}

async function undoRows(rows: Locator): Promise<string[]> {
  const { page } = window;
  const refused: string[] = [];
  for (let at = 0; at < (await rows.count());) {
    const before = await rows.count();
    await press(/^Undo/, rows.nth(at));
    const dialog = page.getByRole('dialog');
    await press('Undo', dialog);
    await waitFor(
      'the answer',
      async () => (await dialog.count()) === 0 || (await dialog.getByRole('alert').count()) > 0,
    );
    if (await dialog.count()) {
      refused.push((await dialog.innerText()).replace(/\s+/g, ' '));
      await page.keyboard.press('Escape');
      at += 1;
    } else await waitFor('it is gone', async () => (await rows.count()) < before);
  }
  return refused;
}

/** The application runs as it did before. */
async function pressOnApplication(name: string): Promise<void> {
  await visit(window.page, `/applications/${project.application.id}`);
  await press(name);
  await settled(window.page);
}

type State = Record<string, unknown>;

/** @param lasting what of the state has to be equal */
async function expectAllBack(before: State, lasting = (state: State): State => state): Promise<void> {
  const { page } = before;
  const state = async (): Promise<State> => lasting(await project.state());
  await waitFor('the page', async () => (await project.state()).page === page, 90_000).catch(() => undefined);
  await waitFor('all is settled', async () => isDeepStrictEqual(await state(), lasting(before))).catch(() => undefined);
  expect(await state()).toEqual(lasting(before));
}

/** A secret that was rotated does not come back: the thief has seen it. A schedule that does has another id. */
const withoutRotated = (state: State): State =>
  JSON.parse(
    JSON.stringify(state)
      .replaceAll(/("key":"DATABASE_(?:PASSWORD|URL)"[^}]*?)"value":"[^"]*","value_hash":"[^"]*"/g, '$1"value":""')
      .replaceAll(/postgresql:\/\/app:[^@]*@/g, 'postgresql://app@')
      .replaceAll(/sch_[0-9a-z]{26}/g, 'sch'),
  ) as State;

/** Whatever the attack was: all of it is back within five minutes. */
const MINUTES = 5;
const minuteOf = (): string => new Date().toISOString().slice(0, 16);
const codesOf = (outcomes: Outcomes): string[] => [...new Set(Object.values(outcomes).flat())].sort();

test('a leaked key that may write and delete', async () => {
  const before = await project.state();
  const ask = asker(await project.service.mintKey({ scopes: ['read', 'write', 'env:write'], role: 'developer' }));
  const since = minuteOf();
  await overwriteAll(project, ask);
  const outcomes = await destroyAll(project, ask);
  // What it has deleted, it does not purge.
  expect(outcomes['bin/{id}']?.length).toBeGreaterThan(9);
  expect(new Set(outcomes['bin/{id}'])).toEqual(new Set(['resource_protected']));
  const began = performance.now();
  await emptyTheBin();
  expect(await undoAll('Test user', since)).toEqual([]);
  await pressOnApplication('Start');
  await expectAllBack(before);
  expect(performance.now() - began).toBeLessThan(MINUTES * 60_000);
  expect(clicks).toBeLessThan(100);
});

test('a leaked token of CI, which may not delete', async () => {
  const before = await project.state();
  clicks = 0;
  const ask = asker(await project.service.mintKey({ may_destroy: false, role: 'developer' }));
  const since = minuteOf();
  const app = `/v2/applications/${project.application.id}`;
  await overwriteAll(project, ask);
  const source = { type: 'git', repository_url: project.evil };
  expect((await ask('PATCH', app, { source })).status).toBe(200);
  expect((await ask('POST', `${app}/deployments`, {})).status).toBe(201);
  const grants = [{ permission: 'full' }];
  const made = await ask('POST', '/v2/bucket_access_keys', { name: 'mine', grants });
  const robot = await ask('POST', '/v2/robot_accounts', { name: 'mine', permissions: ['delete'] });
  expect([made.body.code, robot.body.code]).toEqual(['destroy_not_allowed', 'destroy_not_allowed']);
  expect(codesOf(await destroyAll(project, ask))).toEqual(['destroy_not_allowed']);
  const began = performance.now();
  await undoAll('Test user', since);
  await pressOnApplication('Start').catch(() => undefined);
  await pressOnApplication('Deploy');
  await expectAllBack(before);
  expect(performance.now() - began).toBeLessThan(MINUTES * 60_000);
});

const MUTATIONS = {
  key: `mutation ($input: CreatePersonalKeyInput!) { createPersonalKey(input: $input) { token } }`,
  invite: `mutation ($id: ID!, $input: InviteMemberInput!) { inviteMember(project_id: $id, input: $input) { token } }`,
  accept: `mutation ($input: AcceptInvitationInput!) { acceptInvitation(input: $input) { user { id } } }`,
  remove: 'mutation ($id: ID!, $user: ID!) { removeMember(project_id: $id, user_id: $user) }',
  password: 'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { sessions_ended } }',
};

test('a stolen session without a second factor', async () => {
  const { service } = project;
  // Of the owners from before, the two that the attack is about are left.
  await service.sql(`update members set role = 'developer' from users u
    where u.id = members.user_id and u.email not like '%@example.org'`);
  // A role that the database alone knows holds when what is remembered of it has ended.
  const shown = async () => (await service.call('GET', `/v2/projects/${service.project}`)).body.role;
  await waitFor('the role is seen', async () => (await shown()) === 'developer');
  const before = await project.state();
  const [victim] = await service.sql(`select id from users where email = 'owner@example.org'`);
  const [other] = await service.sql(`select id, email from users where email = 'colleague@example.org'`);
  const thief = browser(service);
  await thief.logIn('owner@example.org', PASSWORD);
  // What the same person took back in the tests before is of an earlier minute.
  await sleep(60_000 - (Date.now() % 60_000));
  const since = minuteOf();
  const input = { name: 'mine', scopes: ['read', 'write', 'env:read', 'env:write', 'deploy'], may_destroy: true };
  const { createPersonalKey } = await thief.data(MUTATIONS.key, { input });
  const id = service.project;
  await thief.data(MUTATIONS.remove, { id, user: other.id });
  const { inviteMember } = await thief.data(MUTATIONS.invite, {
    id,
    input: { email: 'evil@example.com', role: 'owner' },
  });
  const accomplice = browser(service);
  const accepted = { token: inviteMember.token, name: 'Evil', password: 'another long password' };
  await accomplice.data(MUTATIONS.accept, { input: accepted });
  // Neither of them takes the project from its owner.
  expect((await accomplice.refused(MUTATIONS.remove, { id, user: victim.id })).code).toBe('resource_protected');
  expect((await thief.refused(MUTATIONS.remove, { id, user: victim.id })).code).toBe('resource_protected');
  const ask = asker(createPersonalKey.token);
  await overwriteAll(project, ask);
  const outcomes = await destroyAll(project, ask);
  expect(new Set(outcomes['bin/{id}'])).toEqual(new Set(['resource_protected']));

  const began = performance.now();
  clicks = 0;
  await visit(window.page, `/projects/${id}/members`);
  await press('Remove Evil');
  await press('Remove', window.page.getByRole('dialog'));
  await window.page.getByRole('dialog').waitFor({ state: 'detached' });
  await visit(window.page, `/projects/${id}/keys`);
  await press('Revoke mine');
  await press('Revoke', window.page.getByRole('dialog'));
  await window.page.getByRole('dialog').waitFor({ state: 'detached' });
  expect((await ask('GET', '/v2/volumes')).status).toBe(401);
  await emptyTheBin();
  await undoAll('owner', since);
  await pressOnApplication('Start');
  await visit(window.page, `/projects/${id}/members`);
  await window.page.getByLabel('Invite by e-mail').fill(other.email);
  await window.page.getByLabel('Role', { exact: true }).selectOption('owner');
  await press('Invite');
  await window.page.getByText(other.email).first().waitFor();
  await expectAllBack(before, withoutRotated);
  expect(performance.now() - began).toBeLessThan(MINUTES * 60_000);
});
