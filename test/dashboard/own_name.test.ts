/** @tier heavy @quarter 2 @covers engines/ingress/platform_services.ts engines/ingress/http server/http core/process */
// The dashboard by the name of the platform, through its own ingress, and by the address of the machine.
import {
  buildDashboard,
  closeBrowser,
  fileNeedsChromium,
  openWindow,
  settled,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { API, openOwnNames, type OwnNames } from '../support/ingress/own_names';
import { fileNeeds } from '../support/runner/programs';

fileNeeds('openssl');
fileNeedsChromium();

const PERSON = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'correct horse battery' };

/** On a busy machine a password takes long to hash. */
const HASHED_MS = 60_000;

let names: OwnNames;
let window: Window;
const url = (): string => `https://${API}:${names.ports.https}`;

beforeAll(async () => {
  buildDashboard();
  names = await openOwnNames();
  window = await openWindow({ url: url() }, { ignoreHTTPSErrors: true });
}, 180_000);
afterAll(async () => {
  await closeBrowser();
  await names?.close();
});

async function signInAt({ page }: Window): Promise<void> {
  page.setDefaultTimeout(HASHED_MS);
  await page.goto('/sign-in');
  await page.getByLabel('E-mail address').fill(PERSON.email);
  await page.getByLabel('Password').fill(PERSON.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL('/');
  await settled(page);
}

async function sessionOf({ page }: Window): Promise<unknown> {
  const cookies = await page.context().cookies();
  return cookies.find(({ name }) => name.endsWith('platform_session'));
}

test('the first person sets a password by the name, with a cookie that is bound to it', async () => {
  const { page, complaints } = window;
  page.setDefaultTimeout(HASHED_MS);
  const { setup_url: setup } = names.first() as unknown as { setup_url: string };
  expect(setup).toMatch(new RegExp(`^${url()}/`));
  await page.goto(setup);
  await page.getByLabel('Your name').fill(PERSON.name);
  await page.getByLabel('E-mail address').fill(PERSON.email);
  await page.getByLabel('Password').fill(PERSON.password);
  await page.getByRole('button', { name: /Set password/ }).click();
  await page.waitForURL(`${url()}/`);
  await settled(page);
  expect(await sessionOf(window)).toMatchObject({ name: '__Host-platform_session', secure: true });
  expect(complaints).toEqual([]);
}, 90_000);

test('a page shows what is made elsewhere, also after a restart', async () => {
  const { page, origins } = window;
  const { key, project_id: project } = names.first();
  const headers = { authorization: `Bearer ${key}`, 'x-svc-project': project, 'content-type': 'application/json' };
  const make = async (name: string): Promise<void> => {
    const body = JSON.stringify({ name, size_gb: 1 });
    expect((await names.ask({ method: 'POST', path: '/v2/volumes', headers, body })).status).toBe(201);
    await page.getByText(name, { exact: true }).first().waitFor();
  };
  await visit(page, `/projects/${project}/resources/volumes`);
  await make('before-it');
  await names.stop();
  const reloaded = page.reload();
  await names.start();
  await reloaded;
  await settled(page);
  await make('after-it');
  expect([...origins]).toEqual([url()]);
}, 90_000);

test('plain HTTP by the name leads to HTTPS', async () => {
  const { page } = await openWindow({ url: `http://${API}:${names.ports.http}` }, { ignoreHTTPSErrors: true });
  await page.goto('/sign-in');
  expect(page.url()).toBe(`${url()}/sign-in`);
});

test('by the address of the machine people log in over plain HTTP', async () => {
  const byAddress = await openWindow({ url: `http://127.0.0.1:${names.ports.api}` });
  await signInAt(byAddress);
  expect(await sessionOf(byAddress)).toMatchObject({ name: 'platform_session', secure: false });
  await visit(byAddress.page, `/projects/${names.first().project_id}/resources/volumes`);
  await byAddress.page.getByText('after-it', { exact: true }).first().waitFor();
  expect(byAddress.complaints).toEqual([]);
}, 90_000);
