/** @tier heavy @quarter 3 @covers clients/dashboard/src/parts clients/dashboard/src/pages models/base/resource_name */
// Lists with real content: nothing is cut, names stand in place of ids, times are exact, deletions and notices.
import { openWindow, settled, signIn, violations, visit, type Window } from '../support/dashboard/chromium';
import { keepsTheRules } from '../support/dashboard/page_rules';
import { plantedDashboard, type Plant } from '../support/dashboard/plant';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

const LONG = 'a-name-without-any-space-that-somebody-gave-it-late-on-friday';
const ROWS = 40;
const project = (page: string): string => `/projects/${service.project}${page}`;
const application = (page: string): string => `/applications/${planted.application}${page}`;
const create = async (kind: string, body: object): Promise<string> => {
  const { status, body: made } = await service.call('POST', `/v2/${kind}`, { body });
  expect([kind, status, made.detail]).toEqual([kind, 201, undefined]);
  return made.id;
};

beforeAll(async () => {
  for (let number = 1; number <= ROWS; number += 1) {
    const name = number === 1 ? LONG : `assets-${number}`;
    await create('buckets', { name });
    const target = `https://shop.example.com/${number === 1 ? `${LONG}/${LONG}?${LONG}` : number}`;
    await create('observers', { name: `${name} of the shop`, type: 'uptime', uptime: { target } });
  }
  await create('dns_zones', { name: 'shop.example.com' });
  await create('email_domains', { name: 'mail.example.com' });
  await create('volumes', { name: 'uploads', size_gb: 1 });
  await create('volumes', {
    name: LONG.slice(0, 40),
    size_gb: 1,
    application_id: planted.application,
    mount_path: '/data',
  });
  await create(`applications/${planted.application}/schedules`, { name: 'nightly', cron: '30 2 * * *', command: LONG });
  await create(`applications/${planted.application}/runs`, { command: `node ${LONG}.js --argument=${LONG}` });
}, 60_000);

/** Tables that are wider than their place, and cells whose text leaves them. */
const FAULTS = `[...document.querySelectorAll('.table')].flatMap((table) => [
  ...(table.scrollWidth > table.clientWidth + 1 ? [table.getAttribute('aria-label') + ' scrolls'] : []),
  ...[...table.querySelectorAll('tbody > tr > *')].flatMap((cell) => {
    const box = cell.getBoundingClientRect();
    const inner = [...cell.querySelectorAll('*:not(.off-screen)')].map((one) => one.getBoundingClientRect());
    return inner.some(({ right }) => right > box.right + 1) ? [cell.textContent + ' leaves its cell'] : [];
  }),
])`;

test('no list is cut or scrolls sideways, from the smallest screen to the largest', async () => {
  const { page } = window;
  const places = ['', '/databases', '/buckets', '/dns', '/email_domains', '/observers', '/volumes', '/activity'];
  const pages = [...places, '/members', '/keys', '/usage'].map(project);
  for (const place of [...pages, application('/runs'), application('/deployments'), application('/processes')]) {
    await visit(page, place);
    for (const width of [320, 390, 768, 1440, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      expect([place, width, await page.evaluate(FAULTS)]).toEqual([place, width, []]);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}, 120_000);

test('a table that scrolls has a shadow at the edge, and rows are cards on a phone', async () => {
  const { page } = window;
  await page.setViewportSize({ width: 390, height: 800 });
  await keepsTheRules(page, project('/observers'));
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate(`getComputedStyle(document.querySelector('tbody td'), '::before').content`)).toBe(
    '"Status"',
  );
  await page.setViewportSize({ width: 1280, height: 800 });
  expect(await page.evaluate(`getComputedStyle(document.querySelector('tbody td')).display`)).toBe('table-cell');
  const attachment = await page.evaluate(`getComputedStyle(document.querySelector('.table')).backgroundAttachment`);
  expect(attachment).toBe('local, local, scroll, scroll');
});

test('the question of a rollback is read as a whole, though it stands in a table', async () => {
  const { page } = window;
  await page.setViewportSize({ width: 390, height: 800 });
  await visit(page, project('/buckets'));
  await page.getByRole('button', { name: `Delete ${LONG}` }).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  const found = await page.evaluate(`(() => {
    const text = document.querySelector('dialog p');
    const { whiteSpace, textAlign, fontWeight } = getComputedStyle(text);
    return { whiteSpace, textAlign, fontWeight, isCut: text.scrollWidth > text.clientWidth };
  })()`);
  expect(found).toEqual({ whiteSpace: 'normal', textAlign: 'start', fontWeight: '400', isCut: false });
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('a bucket is deleted from the list by its name, and a notice says so until it is dismissed', async () => {
  const { page } = window;
  const name = 'assets-7';
  await visit(page, project('/buckets'));
  await page.getByRole('button', { name: `Delete ${name}`, exact: true }).click();
  const dialog = page.getByRole('dialog');
  expect(await dialog.getByRole('button', { name: 'Delete the bucket' }).getAttribute('disabled')).not.toBeNull();
  await dialog.getByLabel(`Type ${name} to confirm`).fill(name);
  await dialog.getByRole('button', { name: 'Delete the bucket' }).click();
  const notices = page.locator('[role=status] .toast', { hasText: `The bucket ${name} was deleted.` });
  await notices.waitFor();
  await page.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' });
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: /^Dismiss/ }).click();
  await notices.waitFor({ state: 'detached' });
});

test('"Undo" enables a disabled schedule again, and a notice stays while it has the focus', async () => {
  const { page } = window;
  await visit(page, application('/schedules'));
  await page.getByRole('button', { name: 'Disable nightly' }).click();
  await page.getByText('The schedule nightly is disabled.').waitFor();
  await page.evaluate(`document.querySelector('.toast button').focus()`);
  // Longer than a notice stays that nobody looks at.
  await new Promise((resolve) => setTimeout(resolve, 9_000));
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Disable nightly' }).waitFor();
  await page.getByText('The schedule nightly is disabled.').waitFor({ state: 'detached' });
});

test('a variable that was removed is set again by "Undo", with its value', async () => {
  const { page } = window;
  const stored = async (): Promise<string | undefined> => {
    const { body } = await service.call('GET', `/v2${application('/env')}`);
    return body.data.find(({ key }: { key: string }) => key === 'GREETING')?.value;
  };
  const before = await stored();
  await visit(page, application('/environment'));
  await page.getByRole('button', { name: 'Remove GREETING' }).click();
  await page.getByRole('button', { name: 'Review and save' }).click();
  await page.getByLabel('Restart the application with the new values').uncheck();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('GREETING was removed.').waitFor();
  expect([typeof before, await stored()]).toEqual(['string', undefined]);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByLabel('Name of GREETING').waitFor();
  expect(await stored()).toBe(before);
});

test('a process that was scaled has its instances back by "Undo"', async () => {
  const { page } = window;
  await visit(page, application('/processes'));
  await page.getByLabel('Instances of web').fill('2');
  await page.getByRole('button', { name: 'Scale' }).click();
  await page.getByText('web is scaled from 1 to 2.').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('web is scaled from 1 to 2.').waitFor({ state: 'detached' });
  expect(await page.getByLabel('Instances of web').inputValue()).toBe('1');
});

test('the activity names what it is about, and leads there', async () => {
  const { page } = window;
  await visit(page, project('/activity'));
  const table = page.getByRole('region', { name: 'Activity' });
  await table.getByRole('link', { name: 'nightly' }).first().waitFor();
  expect(await table.innerText()).not.toMatch(/\b(app|att|dep|db|run|bkt|vol)_[0-9a-z]{26}/);
  const run = table.locator('tr', { hasText: 'Run created' }).getByRole('link');
  expect(await run.getAttribute('href')).toMatch(new RegExp(`^${application('/runs/run_')}`));
  const observer = table.getByRole('link', { name: `assets-${ROWS} of the shop` }).first();
  expect(await observer.getAttribute('href')).toMatch(/^\/observers\/obs_/);
});

test('a run says who started it, and a time says the moment in the zone of the person', async () => {
  const other = await openWindow(service, { timezoneId: 'Europe/Berlin', locale: 'en-US' });
  const { page } = other;
  await signIn(other, 'owner@example.org', application('/runs'));
  const row = page.getByRole('region', { name: 'Runs' }).locator('tbody tr').first();
  await row.getByText('Owner').waitFor();
  const time = row.locator('time');
  expect(await time.innerText()).toMatch(/(just now|ago)\s+\d+ \w+, ([01]\d|2[0-3]):\d\d$/);
  expect(await time.getAttribute('title')).toMatch(/^\w+day,? \d+ \w+ \d{4} at \d\d:\d\d:\d\d .*\(Europe\/Berlin\)$/);
});

test('a volume is created, attached, detached, and attached again by "Undo"', async () => {
  const { page } = window;
  await keepsTheRules(page, project('/volumes'));
  await page.setViewportSize({ width: 1280, height: 800 });
  const rows = (text: string | RegExp) => page.locator('[aria-label=Volumes] tbody tr', { hasText: text });
  await page.getByLabel('Name', { exact: true }).fill('cache');
  await page.getByRole('button', { name: 'Create volume' }).click();
  await rows('cache').waitFor();
  await service.sql(`update volumes set status = 'available' where application_id is null`);
  await page.getByRole('button', { name: 'Attach cache' }).click();
  await page.getByLabel('Directory').fill('data');
  await page.getByRole('dialog').getByRole('button', { name: 'Attach' }).click();
  await page.getByRole('dialog').locator('small.problem').waitFor();
  await page.getByLabel('Directory').fill('/cache');
  await page.getByRole('dialog').getByRole('button', { name: 'Attach' }).click();
  await rows(/cache.*shop at \/cache/).waitFor();
  expect(await page.getByRole('button', { name: 'Delete cache' }).count()).toBe(0);
  await service.sql(`update volumes set status = 'in_use' where application_id is not null`);
  await page.getByRole('button', { name: 'Detach cache' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Detach' }).click();
  await page.getByRole('button', { name: 'Attach cache' }).waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await rows(/cache.*shop at \/cache/).waitFor();
});

test('what does not exist says so, without the tabs and the actions of what does', async () => {
  const { page } = window;
  const nothing = '0'.repeat(26);
  const places = ['/applications/app_', '/databases/db_', '/dns/dnz_', '/buckets/bkt_', '/observers/obs_'];
  const below = [application(`/runs/run_${nothing}`), application(`/deployments/dep_${nothing}`)];
  const projects = ['', '/databases', '/members', '/usage'].map((page_) => `/projects/prj_${nothing}${page_}`);
  for (const place of [...places.map((prefix) => prefix + nothing), ...below, ...projects]) {
    await visit(page, place);
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    expect([place, await page.getByRole('navigation', { name: 'Sections' }).count()]).toEqual([place, 0]);
    expect([place, await page.locator('.page-head').getByRole('button').count()]).toEqual([place, 0]);
  }
  await visit(page, application('/nowhere'));
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
});

test('charts have a legend of words with values and units, as wide as their cards, and 24 hours', async () => {
  const { page } = window;
  await visit(page, application('/metrics'));
  await settled(page);
  const charts = page.locator('.chart');
  await charts.first().locator('.uplot').waitFor();
  expect(await page.locator('.u-legend').count()).toBe(0);
  expect(await page.locator('.charts').innerText()).not.toMatch(/_(ms|mb|percent)|\d ?[ap]m\b/i);
  const missing = await page.evaluate(`(() => {
    const width = (name) => document.querySelector(name).getBoundingClientRect().width;
    return width('.chart-place') - width('.chart .uplot');
  })()`);
  expect(Math.abs(missing as number)).toBeLessThan(1);
});

test('a viewer sees the lists, and no button that deletes', async () => {
  const viewer = await openWindow(service);
  await signIn(viewer, 'viewer@example.org', project('/buckets'));
  await viewer.page.getByRole('link', { name: LONG }).waitFor();
  expect(await viewer.page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
  await visit(viewer.page, project('/volumes'));
  await viewer.page.getByRole('link', { name: 'uploads' }).waitFor();
  expect(await viewer.page.getByRole('button', { name: /^(Attach|Detach|Delete)/ }).count()).toBe(0);
  expect(viewer.complaints).toEqual([]);
});
