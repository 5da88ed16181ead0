/** @tier heavy @quarter 1 @covers clients/dashboard */
// Each page of the dashboard by the rules of axe (WCAG 2.2 AA), from 320 pixels to wide, light and dark.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  openWindow,
  overflow,
  screenshot,
  settled,
  violations,
  visit,
  type Window,
} from '../support/dashboard/chromium';
import { asItStands } from '../support/dashboard/page_rules';
import { plantedDashboard, type Plant } from '../support/dashboard/plant';
import { ROOT } from '../support/runner/repository';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

const application = (page = ''): string => `/applications/${planted.application}${page}`;

const PAGES: [name: string, path: () => string, picture?: string][] = [
  ['projects', () => '/'],
  ['project', () => `/projects/${service.project}`, 'dashboard-project'],
  ['activity', () => `/projects/${service.project}/activity`],
  ['new application', () => `/projects/${service.project}/new?from=preset`],
  ['databases', () => `/projects/${service.project}/databases`],
  ['application', () => application()],
  ['deployments', () => application('/deployments')],
  ['deployment', () => application(`/deployments/${planted.deployment}`)],
  ['logs', () => application('/logs'), 'dashboard-logs'],
  ['metrics', () => application('/metrics')],
  ['environment', () => application('/environment')],
  ['processes', () => application('/processes')],
  ['domains', () => application('/domains')],
  ['settings', () => application('/settings')],
  ['database', () => `/databases/${planted.database}`],
  ['backups', () => `/databases/${planted.database}/backups`],
  ['connect', () => `/databases/${planted.database}/connect`],
  ['account', () => '/settings'],
  ['search', () => '/search?q=sh'],
  ['a page that does not exist', () => '/nowhere'],
  ['log in', () => '/sign-in'],
  ['welcome', () => '/welcome'],
];

test.each(PAGES.map(([name, place, picture = '']) => [name, place, picture] as const))(
  '%s',
  async (_, place, picture) => {
    const { page } = window;
    await visit(page, place());
    if (picture) {
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 1280, height: 800 });
      await screenshot(page, picture);
    }
    await page
      .locator('details.api-calls summary')
      .click({ timeout: 1_000 })
      .catch(() => {});
    await asItStands(page);
  },
);

test('logging in, and the first start', async () => {
  const { page, complaints } = await openWindow(service, { viewport: { width: 320, height: 640 } });
  for (const place of ['/sign-in', '/welcome']) {
    await page.goto(place);
    await page.getByLabel('Password').waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([place, await violations(page)]).toEqual([place, []]);
    }
    expect(await overflow(page)).toBe(0);
  }
  expect(complaints).toEqual([]);
});

test('"as API call" shows what the page asks, as REST and as GraphQL', async () => {
  const { page } = window;
  await visit(page, application());
  await page.locator('details.api-calls summary').click();
  // The table of operations is loaded when it is first opened.
  await page.locator('details.api-calls').getByText('curl, REST').first().waitFor();
  const text = await page.locator('details.api-calls').innerText();
  expect(text).toContain(
    `curl '${service.url}/v2/applications/${planted.application}' -H "Authorization: Bearer $KEY"`,
  );
  expect(text).toContain('getApplication(id: $id)');
  expect(text).toContain('svc status');
});

test('keys: ? shows them, g and a letter goes, / searches', async () => {
  const { page } = window;
  await visit(page, '/');
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.waitForURL(/\/projects\/prj_\w+$/);
  await settled(page);
  await page.keyboard.press('/');
  await page.getByRole('dialog', { name: 'Command palette' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
});

test('nothing was asked elsewhere, and the policy of the page was never broken', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});

test('the script of the first page is at most 100 kB, compressed', () => {
  const assets = path.join(ROOT, 'clients/dashboard/dist/assets');
  const document = readFileSync(path.join(assets, '../index.html'), 'utf8');
  const first = [...document.matchAll(/(?:src|href)="\/assets\/([^"]+\.js)"/g)].map(([, name]) => name as string);
  expect(first.length).toBeGreaterThan(0);
  const bytes = first.map((name) => gzipSync(readFileSync(path.join(assets, name)), { level: 9 }).length);
  expect(bytes.reduce((sum, one) => sum + one)).toBeLessThan(100_000);
  for (const name of readdirSync(assets).filter((one) => one.endsWith('.js')))
    for (const ending of ['.gz', '.br']) expect(statSync(path.join(assets, name + ending)).size).toBeGreaterThan(0);
});
