/** @tier heavy @quarter 3 @covers clients/dashboard/src */
// The frame of the dashboard: the side bar, the drawer that it is on a phone, and the palette that finds everything.
import { openWindow, settled, signIn, violations, visit, type Page, type Window } from '../support/dashboard/chromium';
import { geometryFaults } from '../support/dashboard/geometry';
import { faultsOfRoom } from '../support/dashboard/page_rules';
import { plantedDashboard, type Plant } from '../support/dashboard/plant';
import type { TestService } from '../support/service';

let service: TestService;
let planted: Plant;
let window: Window;
plantedDashboard((opened) => void ({ service, planted, window } = opened));

const application = (page = ''): string => `/applications/${planted.application}${page}`;
const palette = (page: Page) => page.getByRole('dialog', { name: 'Command palette' });
const field = (page: Page) => palette(page).getByRole('combobox');
const WAIT_MS = 15_000;
const ACTIVE = `document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.innerText`;

/** Two buttons that touch, a text that is cut, one that lies on it, and one that leaves its button. */
const PLANTED = `for (const [tag, text, css] of [
  ['button', 'one', 'margin:0'], ['button', 'two', 'margin:0'],
  ['p', 'a text that is longer than its box', 'overflow:hidden;width:60px;white-space:nowrap;margin:2rem 0 0'],
  ['p', 'lies on it', 'margin:-1.2rem 0 2rem'],
  ['button', 'a label that is far too long for its button', 'display:block;width:40px;white-space:nowrap'],
]) {
  const element = document.createElement(tag);
  element.textContent = text;
  element.style.cssText = css;
  document.querySelector('main').append(element);
}`;

/** Waits until an expression holds on the page, whose policy refuses what evaluates text by itself. */
async function until(page: Page, expression: string): Promise<void> {
  const end = Date.now() + WAIT_MS;
  while (!(await page.evaluate(expression))) {
    if (Date.now() > end) throw new Error(`It never held: ${expression}`);
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 20))');
  }
}

async function openPalette(page: Page, key = 'Control+k'): Promise<void> {
  await page.keyboard.press(key);
  await field(page).waitFor();
  await until(page, `document.activeElement.getAttribute('role') === 'combobox'`);
}

/** Types a text, waits until it is found as the first one, and does it. */
async function say(page: Page, text: string, first: string): Promise<void> {
  await openPalette(page);
  await page.keyboard.type(text);
  await until(page, `(${ACTIVE} ?? '').includes(${JSON.stringify(first)})`);
  await page.keyboard.press('Enter');
  await palette(page).waitFor({ state: 'detached' });
}

test('the sections of an application stand in the side bar, and the page of the address is marked', async () => {
  const { page } = window;
  await visit(page, application('/logs'));
  const sections = page.getByRole('list', { name: 'Sections of shop' });
  expect(await sections.getByRole('link').allInnerTexts()).toEqual([
    ...['shop', 'Deployments', 'Logs', 'Metrics', 'Environment', 'Processes', 'Runs', 'Schedules', 'Domains'],
    'Settings',
  ]);
  expect(await page.locator('[aria-current=page]').allInnerTexts()).toEqual(['Logs']);
  await sections.getByRole('link', { name: 'Domains' }).click();
  await page.waitForURL(application('/domains'));
  await settled(page);
  expect(await page.locator('[aria-current=page]').allInnerTexts()).toEqual(['Domains']);
});

test('an application that does not exist shows no sections', async () => {
  const { page } = window;
  await visit(page, '/applications/app_00000000000000000000000000');
  await page.getByRole('alert').waitFor();
  expect(await page.locator('.sections').count()).toBe(0);
});

test('on a phone the side bar is a drawer that keeps the focus and closes with Escape', async () => {
  const phone = await openWindow(service, { viewport: { width: 390, height: 800 } });
  await signIn(phone, 'owner@example.org', application());
  const { page } = phone;
  expect(await page.getByRole('navigation', { name: 'Main' }).count()).toBe(0);
  const button = page.getByRole('button', { name: 'Menu' });
  await button.click();
  const drawer = page.getByRole('dialog', { name: 'Menu' });
  await drawer.waitFor();
  expect(await violations(page)).toEqual([]);
  expect(await geometryFaults(page)).toEqual([]);
  for (let press = 0; press < 60; press += 1) {
    await page.keyboard.press('Tab');
    expect(await page.evaluate(`document.activeElement.closest('main, header') === null`)).toBe(true);
  }
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  expect(await page.evaluate(`document.activeElement.getAttribute('aria-label')`)).toBe('Menu');
  await button.click();
  await drawer.getByRole('link', { name: 'Logs' }).click();
  await page.waitForURL(application('/logs'));
  await drawer.waitFor({ state: 'detached' });
  expect(phone.complaints).toEqual([]);
}, 60_000);

test('the palette finds things, variables, domains and pages by name, and goes there', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}`);
  await say(page, 'orders', 'orders');
  await page.waitForURL(`/databases/${planted.database}`);
  await say(page, 'GREETING', 'GREETING');
  await page.waitForURL(application('/environment'));
  await say(page, 'shop.example', 'shop.example.com');
  await page.waitForURL(application('/domains'));
  await say(page, 'shop logs', 'Logs');
  await page.waitForURL(application('/logs'));
  await say(page, 'members', 'Members');
  await page.waitForURL(`/projects/${service.project}/members`);
});

test('the palette does what it is told', async () => {
  const { page } = window;
  await visit(page, application());
  await say(page, 'restart shop', 'Restart shop');
  await page.waitForURL(application());
  const before = await page.evaluate('document.documentElement.dataset.theme');
  await say(page, 'colours', 'colours');
  expect(await page.evaluate('document.documentElement.dataset.theme')).not.toBe(before);
  await say(page, 'colours', 'colours');
  await say(page, 'new application', 'New application');
  await page.waitForURL(`/projects/${service.project}/new`);
});

test('the palette offers what applies: to stop what runs, to start what stands', async () => {
  const { page } = window;
  const offers = async (text: string): Promise<string[]> => {
    await openPalette(page, 'Control+k');
    await page.keyboard.type(text);
    await page.getByRole('option', { name: /^Deploy shop/ }).waitFor();
    const names = await page.getByRole('option', { name: /^(Start|Stop|Restart) shop/ }).allInnerTexts();
    await page.keyboard.press('Escape');
    await palette(page).waitFor({ state: 'detached' });
    return names.map((name) => name.split('\n')[0] as string).sort();
  };
  const setStatus = (status: string): Promise<unknown> =>
    service.sql('update applications set status = $2 where id = $1', [planted.application, status]);
  await setStatus('running');
  await visit(page, application());
  expect(await offers('shop action')).toEqual(['Restart shop', 'Stop shop']);
  await say(page, 'stop shop', 'Stop shop');
  const question = page.getByRole('dialog', { name: 'Stop shop?' });
  await question.getByRole('button', { name: 'Cancel' }).click();
  await page.waitForURL(application());
  await setStatus('stopped');
  expect(await offers('shop action')).toEqual(['Start shop']);
  await setStatus('running');
});

test('arrows move through the palette, from one end to the other, and Escape closes it', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}`);
  await openPalette(page, '/');
  const first = await page.evaluate(ACTIVE);
  await page.keyboard.press('ArrowDown');
  expect(await page.evaluate(ACTIVE)).not.toBe(first);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  const last = await page.getByRole('option').last().innerText();
  expect(await page.evaluate(ACTIVE)).toBe(last);
  expect(await violations(page)).toEqual([]);
  expect(await faultsOfRoom(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await palette(page).waitFor({ state: 'detached' });
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('the switcher lists applications and projects alone', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/members`);
  await page.getByRole('button', { name: /switch project or application/ }).click();
  await page.getByRole('option', { name: /^shop/ }).waitFor();
  expect(await page.getByRole('option', { name: /Members/ }).count()).toBe(0);
  await page.keyboard.type('shop');
  await page.keyboard.press('Enter');
  await page.waitForURL(application());
});

/** Types a text and presses Enter in one task of the browser: nothing is drawn in between. */
const TYPED_AND_ENTERED = `(() => {
  const field = document.activeElement;
  field.value = 'All projects';
  field.dispatchEvent(new InputEvent('input', { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
})()`;

test('Enter means what was typed, even if nothing was drawn since', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/members`);
  await page.getByRole('button', { name: /switch project or application/ }).click();
  await page.getByRole('option', { name: /^shop/ }).waitFor();
  // What is drawn and marked is the application.
  await page.evaluate(TYPED_AND_ENTERED);
  await page.waitForURL('/');
});

/** Answers come when `release` is called. */
const HOLD_ANSWERS = `(() => {
  const held = new Promise((resolve) => (window.release = resolve));
  const ask = window.fetch;
  window.fetch = async (...given) => (await held, ask(...given));
})()`;

test('Enter waits for the names of the project, and what was done since takes it back', async () => {
  const { page } = window;
  await visit(page, `/projects/${service.project}/members`);
  await page.evaluate(HOLD_ANSWERS);
  await openPalette(page);
  await page.keyboard.type('orders');
  await page.keyboard.press('Enter');
  await page.keyboard.type(' no');
  await page.evaluate('window.release()');
  await page.getByText('No matches.').waitFor();
  expect(await palette(page).count()).toBe(1);
  await visit(page, `/projects/${service.project}/members`);
  await page.evaluate(HOLD_ANSWERS);
  await openPalette(page);
  await page.keyboard.type('orders');
  await page.keyboard.press('Enter');
  expect(await palette(page).count()).toBe(1);
  await page.evaluate('window.release()');
  await page.waitForURL(`/databases/${planted.database}`);
});

test('what is typed while the palette is loaded is found in it', async () => {
  const { page } = window;
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/assets/palette-*.js', async (route) => {
    await held;
    await route.continue();
  });
  await visit(page, `/projects/${service.project}/members`);
  await page.keyboard.press('Control+k');
  await palette(page).waitFor();
  await page.keyboard.type('shop logs');
  await page.keyboard.press('Enter');
  release();
  await page.waitForURL(application('/logs'));
  await page.unroute('**/assets/palette-*.js');
});

test('a viewer finds names, and no action that the role may not do', async () => {
  const viewer = await openWindow(service);
  await signIn(viewer, 'viewer@example.org', `/projects/${service.project}`);
  const { page } = viewer;
  await openPalette(page);
  await page.keyboard.type('shop');
  await page.getByRole('option', { name: /^shop application/ }).waitFor();
  await page.getByText(/names read so far/).waitFor({ state: 'detached' });
  expect(await page.getByRole('option', { name: /Deploy|Restart|New / }).count()).toBe(0);
  expect(viewer.complaints).toEqual([]);
});

test('a stranger is led to the login page after one question of who it is', async () => {
  const { page } = await openWindow(service);
  let asked = 0;
  page.on('request', (request) => void (asked += /\bviewer \{/.test(request.postData() ?? '') ? 1 : 0));
  await page.goto('/');
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  expect(asked).toBe(1);
});

test('the home of a project says what needs attention, with one query', async () => {
  const { page } = window;
  const schedule = { name: 'nightly', cron: '0 3 * * *', command: 'true' };
  const made = await service.call('POST', `/v2${application()}/schedules`, { body: schedule });
  await service.sql('update cron_schedules set failures_in_a_row = 3 where id = $1', [made.body.id]);
  const asked: string[] = [];
  page.on('request', (request) => {
    const query = /query (\w+)/.exec(request.postData() ?? '')?.[1];
    if (query) asked.push(query);
  });
  await visit(page, `/projects/${service.project}`);
  const attention = page.getByRole('region', { name: 'Needs attention' });
  await attention.getByRole('link', { name: 'The schedule nightly of shop failed 3 times in a row.' }).waitFor();
  await attention.getByRole('link', { name: 'shop.example.com has no DNS records that lead here.' }).waitFor();
  const others = ['CatalogNames', 'ResourceNames', 'Viewer'];
  expect(asked.filter((name) => name !== 'ProjectHome').sort()).toEqual(others);
});

test('the search for faults of geometry finds what it is for', async () => {
  const { page } = window;
  await visit(page, '/settings');
  await page.evaluate(PLANTED);
  const kinds = (await geometryFaults(page)).map((fault) => fault.split(':')[0]);
  expect([...new Set(kinds)].sort()).toEqual([
    ...['controls that touch', 'cut', 'leaves its box', 'texts on each other'],
  ]);
});
