/** @tier heavy @quarter 2 @covers clients/dashboard/src/api server/graphql contract/live.ts */
// A log that is followed while something goes wrong: the service is started anew, or the session ends.
import { createLog } from '../../core/log/log';
import { openPlatform } from '../../server/platform/platform';
import { startService as serve } from '../../server/service';
import { dashboardOf, openWindow, signIn, visit, type Page, type Window } from '../support/dashboard/chromium';
import { logLines, plant, type Plant } from '../support/dashboard/plant';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
dashboardOf(
  async () => {
    service = await startService();
    planted = await plant(service);
    return service;
  },
  (opened) => void (window = opened),
);

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

test('a session that ends while a log is followed leads to signing in', async () => {
  const { page } = window;
  await visit(page, logs());
  await hasStatus(page, 'live');
  await service.sql('delete from sessions');
  await page.waitForURL(/\/sign-in\?return_to=%2Fapplications%2Fapp_\w+%2Flogs$/);
}, 60_000);
