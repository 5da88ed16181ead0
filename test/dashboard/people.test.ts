/** @tier heavy @quarter 4 @covers clients/dashboard/src/pages/people */
// Members, invitations and keys in the browser: secrets are shown once.
import {
  dashboardOf,
  newPerson,
  openWindow,
  signIn,
  violations,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { startService, type TestService } from '../support/service';

let service: TestService;
let window: Window;
dashboardOf(
  async () => {
    service = await startService();
    await newPerson(service, 'owner@example.org', 'owner');
    await newPerson(service, 'viewer@example.org', 'viewer');
    return service;
  },
  (opened) => void (window = opened),
);

const project = (page: string): string => `/projects/${service.project}/${page}`;
const statusOf = async (token: string): Promise<number> =>
  (await service.call('GET', '/v2/applications', { key: token })).status;

test('a key of the project is shown once, works, is rotated and revoked', async () => {
  const { page } = window;
  await keepsTheRules(page, project('keys'));
  await page.getByLabel('New project key').fill('CI <b>');
  await page.getByRole('button', { name: 'Create project key' }).click();
  const shown = page.getByLabel('key CI <b>', { exact: true });
  const first = (await shown.innerText()).trim();
  expect(await statusOf(first)).toBe(200);
  await page.getByRole('button', { name: 'I have saved it' }).click();
  const second = await rotated('CI <b>');
  expect([second === first, await statusOf(second)]).toEqual([false, 200]);
  expect(await statusOf(first)).toBe(200);
  await page.getByRole('dialog').getByLabel('All programs have the new key').check();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke the old key' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await statusOf(first)).toBe(401);
  expect(await shown.count()).toBe(0);
});

test('a rotation that is left in the middle keeps both keys, and the new one on the page', async () => {
  const { page } = window;
  await page.getByRole('button', { name: 'Rotate CI <b>' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const third = await rotated('CI <b>');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const shown = page.getByLabel('key CI <b>', { exact: true });
  expect((await shown.innerText()).trim()).toBe(third);
  await page
    .getByRole('row', { name: /CI <b>/ })
    .nth(1)
    .waitFor();
  await page.getByRole('button', { name: 'Revoke CI <b>' }).nth(1).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const second = third;
  await page.getByRole('button', { name: 'I have saved it' }).click();
  await visit(page, project('keys'));
  expect((await page.locator('main').innerText()).includes(second)).toBe(false);
  await page.getByRole('button', { name: 'Revoke CI <b>' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await statusOf(second)).toBe(401);
});

/** Makes the new key of a rotation. @returns its token */
async function rotated(name: string): Promise<string> {
  const { page } = window;
  await page.getByRole('button', { name: `Rotate ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Make the new key' }).click();
  return (await page.getByLabel(`new key ${name}`, { exact: true }).innerText()).trim();
}

test('a personal key has the scopes that were chosen', async () => {
  const { page } = window;
  await page.getByLabel('New personal key').fill('laptop');
  for (const scope of ['write', 'deploy', 'logs:read']) await page.getByLabel(scope, { exact: true }).uncheck();
  await page.getByLabel('may delete').last().uncheck();
  await page.getByRole('button', { name: 'Create personal key' }).click();
  const token = (await page.getByLabel('key laptop', { exact: true }).innerText()).trim();
  const { body } = await service.call('GET', '/v2/me', { key: token });
  expect(JSON.stringify(body)).toContain('"scopes":["read"]');
  await page.getByRole('row', { name: /laptop.*read; may not delete; in 1 project/ }).waitFor();
});

test('a personal key is rotated with its scopes, its projects and its time', async () => {
  const { page } = window;
  const token = await rotated('laptop');
  const { body } = await service.call('GET', '/v2/me', { key: token });
  expect(body.token).toMatchObject({ scopes: ['read'], project_ids: [service.project] });
  expect(Date.parse(body.token.expires_at) - Date.now()).toBeGreaterThan(89 * 86_400_000);
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke it later' }).click();
  await page
    .getByRole('row', { name: /laptop.*may not delete/ })
    .nth(1)
    .waitFor();
});

test('a person is invited by a link that is shown once, and roles change', async () => {
  const { page } = window;
  await keepsTheRules(page, project('members'));
  await page.getByLabel('Invite by e-mail').fill('new@example.org');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  await page.getByLabel('link for new@example.org', { exact: true }).waitFor();
  await page.getByRole('row', { name: /new@example.org/ }).waitFor();
  await page.getByRole('button', { name: 'Withdraw the invitation of new@example.org' }).click();
  await page.getByText('No open invitations.').waitFor();
  await page.getByLabel('Role of viewer@example.org').selectOption('developer');
  for (;;) {
    const [{ role }] = (await service.sql(
      `select role from members m join users u on u.id = m.user_id where u.email = 'viewer@example.org'`,
    )) as [{ role: string }];
    if (role === 'developer') break;
  }
  await page.getByLabel('Role of viewer@example.org').selectOption('viewer');
  await keepsTheRules(page, project('usage'));
});

test('a viewer sees members and keys, and may only leave', async () => {
  const viewer = await openWindow(service);
  const { page } = viewer;
  await signIn(viewer, 'viewer@example.org', project('members'));
  expect(await page.getByRole('button', { name: 'Invite', exact: true }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /^Remove/ }).count()).toBe(0);
  expect(await page.getByRole('button', { name: /^Leave/ }).count()).toBe(1);
  await visit(page, project('keys'));
  await page.getByText('Only owners create project keys.').waitFor();
  expect(viewer.complaints).toEqual([]);
});

test('nothing was asked elsewhere, and the policy of the page was never broken', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});
