/** @tier heavy @quarter 2 @covers clients/dashboard/src/pages/buckets engines/object_storage/settings/cors.ts */
// A bucket in the browser: its files are at another origin, which the policy of the page allows, and a rule of the
// bucket.
import {
  dashboardOf,
  newPerson,
  openWindow,
  settled,
  signIn,
  violations,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let window: Window;
let place: string;
dashboardOf(
  async () => {
    world = await startS3();
    await newPerson(world.service, 'owner@example.org', 'owner');
    await newPerson(world.service, 'viewer@example.org', 'viewer');
    return { url: world.service.url, close: () => world.close() };
  },
  (opened) => void (window = opened),
);

const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
// Slashes are folders.
const MARKUP = '<img src=x onerror="document.title=1">';
const NAME = 'a b & <b>ü+%.txt';

test('a bucket is created, and its name is judged by the API', async () => {
  const { page } = window;
  await keepsTheRules(page, `/projects/${world.service.project}/buckets`);
  await page.getByLabel('Name', { exact: true }).fill('Not A Name');
  await page.getByRole('button', { name: 'Create bucket' }).click();
  await page.locator('.field small.problem').first().waitFor();
  await page.getByLabel('Name', { exact: true }).fill('shop-assets');
  await page.getByRole('button', { name: 'Create bucket' }).click();
  await page.waitForURL(/\/buckets\/bkt_\w+$/);
  await settled(page);
  place = new URL(page.url()).pathname;
  await page.getByText('The bucket is empty').waitFor();
});

test('uploads wait for a rule of the bucket, and keep the rules that it has', async () => {
  const { page } = window;
  const rules = [{ allowed_origins: ['https://shop.example.com'], allowed_methods: ['GET'] }];
  await world.service.call('PUT', `/v2${place}/cors`, { body: { rules } });
  await visit(page, place);
  await page.getByRole('button', { name: 'Allow uploads from this page' }).click();
  await page.getByLabel('Upload files').waitFor();
  const { body } = await world.service.call('GET', `/v2${place}/cors`);
  expect(body.rules.map(({ allowed_origins }: { allowed_origins: string[] }) => allowed_origins)).toEqual([
    ['https://shop.example.com'],
    [world.service.url],
  ]);
});

test('files are uploaded with their progress, into a folder that is opened', async () => {
  const { page } = window;
  await page.getByLabel('Into a new folder').fill('reports/2026');
  const big = file('big.bin', 'x'.repeat(6_000_000));
  // What the rule allows counts within a second.
  await page.getByLabel('Upload files').setInputFiles([file(NAME, 'hello'), big]);
  await page.getByRole('status').nth(1).waitFor();
  await page.locator('.row', { hasText: 'big.bin' }).getByText('uploaded').waitFor();
  await page.getByRole('link', { name: 'reports/' }).click();
  await page.getByRole('link', { name: '2026/' }).click();
  await page.locator('th', { hasText: NAME }).waitFor();
  await page.locator('td', { hasText: '6.0 MB' }).waitFor();
  expect(await page.locator('main b').count()).toBe(0);
  await keepsTheRules(page, `${place}?prefix=reports%2F2026%2F`);
});

test('a file comes back as it was sent', async () => {
  const { page } = window;
  await page.evaluate('HTMLAnchorElement.prototype.click = function () { window.opened = [this.href, this.target] }');
  await page.getByRole('button', { name: `Download ${NAME}` }).click();
  const [url, target] = await opened();
  expect([new URL(url).origin, target]).toEqual([world.endpoint, '_blank']);
  const answer = await fetch(url);
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
    200,
    'text/plain',
    'hello',
  ]);
});

async function opened(): Promise<[string, string]> {
  for (;;) {
    const found = (await window.page.evaluate('window.opened ?? null')) as [string, string] | null;
    if (found) return found;
  }
}

test('a file is deleted after a question', async () => {
  const { page } = window;
  await page.getByRole('button', { name: `Delete ${NAME}` }).click();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('dialog').getByText('cannot be brought back').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.locator('th', { hasText: NAME }).waitFor({ state: 'detached' });
  const { data } = (await world.service.call('GET', `/v2${place}/objects`)).body;
  expect(data.map(({ key }: { key: string }) => key)).toEqual(['reports/2026/big.bin']);
});

test('a bucket with objects is not deleted, and the page says why', async () => {
  const { page } = window;
  await visit(page, place);
  await page.getByRole('button', { name: 'Delete the bucket' }).click();
  await page.getByLabel(/Type shop-assets/).fill('shop-assets');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the bucket' }).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
});

test('keys with markup are text', async () => {
  const { page } = window;
  await page.keyboard.press('Escape');
  await world
    .client()
    .send(new (await import('@aws-sdk/client-s3')).PutObjectCommand({ Bucket: 'shop-assets', Key: MARKUP, Body: 'x' }));
  await visit(page, place);
  await page.locator('th', { hasText: MARKUP }).waitFor();
  expect(await page.locator('main img').count()).toBe(0);
});

test('a viewer sees files, and neither reads nor changes them', async () => {
  const viewer = await openWindow(world.service);
  await signIn(viewer, 'viewer@example.org', place);
  await viewer.page.getByRole('link', { name: 'reports/' }).waitFor();
  for (const name of ['Download', 'Delete', 'Allow']) {
    expect(await viewer.page.getByRole('button', { name: new RegExp(name) }).count()).toBe(0);
  }
  expect(viewer.complaints).toEqual([]);
});

test('nothing was asked but of the platform and its object storage', () => {
  expect([...window.origins].sort()).toEqual([world.service.url, world.endpoint].sort());
  expect(window.complaints).toEqual([]);
});
