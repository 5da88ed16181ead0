/** @tier heavy @quarter 1 @covers clients/dashboard/src/api server/graphql contract/live.ts */
// A page that is kept current while something goes wrong: the service is started anew, or the session ends.
import { createLog } from '../../core/log/log';
import { openPlatform } from '../../server/platform/platform';
import { startService as serve } from '../../server/service';
import { openWindow, PASSWORD, signIn, visit, type Page, type Window } from '../support/dashboard/chromium';
import { logLines, plantedDashboard, type Plant } from '../support/dashboard/plant';
import { freePort } from '../support/processes/free_port';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

/** The service once more, on a port of its own and the same database. */
async function serveOn(port: number): Promise<() => Promise<void>> {
  const platform = await openPlatform({ ...service.platform.config, port }, createLog('error'));
  const faces = await serve(platform);
  return async () => {
    await faces.close();
    await platform.close();
  };
}

const logs = (): string => `/applications/${planted.application}/logs`;
const write = (count: number): Promise<void> => logLines(service, planted.application, planted.deployment, count);
const hasStatus = (page: Page, text: string): Promise<void> =>
  page.locator('.log-head .status', { hasText: text }).waitFor();

test('a tail goes on when the service is there again: no line is missing, and none comes twice', async () => {
  const port = await freePort();
  const stop = await serveOn(port);
  const watching = await openWindow({ url: `http://127.0.0.1:${port}` });
  const { page } = watching;
  const counts = (lines: number): Promise<void> => page.getByText(`${lines} lines`, { exact: true }).waitFor();
  // The tail begins with the newest line that there is: all later ones are to come after it.
  await service.sql(`update log_lines set at = at - interval '2 minutes'`);
  await signIn(watching, 'owner@example.org');
  await visit(page, logs());
  await hasStatus(page, 'live');
  await counts(30);
  await write(40);
  await counts(70);
  await stop();
  await hasStatus(page, 'waiting');
  await write(50);
  const stopAgain = await serveOn(port);
  await hasStatus(page, 'live');
  await counts(120);
  await write(7);
  await counts(127);
  await stopAgain();
}, 90_000);

const volumes = (): string => `/projects/${service.project}/resources/volumes`;
/** A list with a state that passes is asked again and again. */
const settleVolumes = () => service.sql(`update volumes set status = 'available'`);
const createVolume = (name: string) => service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 } });

test('a page of the schema shows what was made before, while and after the service was away', async () => {
  const port = await freePort();
  const stop = await serveOn(port);
  const watching = await openWindow({ url: `http://127.0.0.1:${port}` });
  const { page } = watching;
  const shows = (name: string): Promise<void> => page.locator('tbody th', { hasText: name }).waitFor();
  await signIn(watching, 'owner@example.org');
  await visit(page, volumes());
  await page.getByText('No volume yet').waitFor();
  await createVolume('before');
  await shows('before');
  await stop();
  await createVolume('while');
  const stopAgain = await serveOn(port);
  await shows('while');
  await createVolume('after');
  await shows('after');
  expect(await page.locator('tbody tr').count()).toBe(3);
  // What the page could not ask meanwhile is no longer said once it can.
  expect(await page.locator('main .notice.bad').count()).toBe(0);
  await stopAgain();
}, 90_000);

test('a page shows what is made elsewhere by a browser whose clock is ahead', async () => {
  const { page } = window;
  await settleVolumes();
  await page.addInitScript('const now = Date.now; Date.now = () => now() + 600_000;');
  await visit(page, volumes());
  await createVolume('of-now');
  await page.locator('tbody th', { hasText: 'of-now' }).waitFor();
}, 60_000);

test('a page that the API does not answer asks again by itself', async () => {
  const { page } = window;
  await settleVolumes();
  await visit(page, volumes());
  await page.evaluate('globalThis.ask = fetch; globalThis.fetch = () => Promise.reject(new TypeError("no network"))');
  await createVolume('unseen');
  await page.getByText('The server does not answer').first().waitFor();
  await page.evaluate('globalThis.fetch = globalThis.ask');
  await page.locator('tbody th', { hasText: 'unseen' }).waitFor();
  expect(await page.locator('main .notice.bad').count()).toBe(0);
}, 60_000);

test('a session that ends while a log is followed leads to logging in', async () => {
  const { page } = window;
  await visit(page, logs());
  await hasStatus(page, 'live');
  await service.sql('delete from sessions');
  await page.waitForURL(/\/sign-in\?return_to=%2Fapplications%2Fapp_\w+%2Flogs$/);
}, 60_000);

test('a session that ends while a page of the schema is open leads to logging in, and back', async () => {
  const { page } = window;
  await signIn(window, 'owner@example.org', volumes());
  await page.locator('tbody th', { hasText: 'after' }).waitFor();
  await service.sql('delete from sessions');
  await page.waitForURL(/\/sign-in\?return_to=%2Fprojects%2Fprj_\w+%2Fresources%2Fvolumes$/);
  await page.getByLabel('E-mail address').fill('owner@example.org');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL(volumes());
  await page.locator('tbody th', { hasText: 'after' }).waitFor();
}, 60_000);
