/** @tier heavy @quarter 3 @covers server/oauth models/identity/oauth */
// The pages of the authorisation server in a real browser, and by the rules of axe (WCAG 2.2 AA).
import { existsSync } from 'node:fs';
import path from 'node:path';
import { geometryFaults } from '../../support/dashboard/geometry';
import { newUser, PASSWORD } from '../../support/identity/browser';
import { startService, type TestService } from '../../support/service';
import { openClient } from './client';
import { openForeignProvider, type ForeignProvider } from './foreign_provider';

interface Message {
  text(): string;
  location(): { url: string };
}

interface Route {
  fulfill(answer: object): Promise<void>;
  request(): { url(): string };
}

interface Page {
  goto(url: string): Promise<unknown>;
  url(): string;
  title(): Promise<string>;
  fill(selector: string, value: string): Promise<void>;
  click(selector: string): Promise<void>;
  waitForURL(url: RegExp): Promise<void>;
  content(): Promise<string>;
  setContent(html: string): Promise<void>;
  route(url: RegExp, handle: (route: Route) => void): Promise<void>;
  on(event: 'console', listener: (message: Message) => void): void;
  evaluate(text: string): Promise<unknown>;
  waitForFunction(text: string): Promise<unknown>;
  screenshot(options: { path: string }): Promise<unknown>;
  close(): Promise<void>;
  waitForEvent(name: 'popup'): Promise<Page>;
  context(): Pick<Page, 'route'>;
}

interface Browser {
  newPage(options?: object): Promise<Page>;
  close(): Promise<void>;
}

const TOOLS = path.resolve(__dirname, '../../../node_modules');
const [PLAYWRIGHT, AXE] = [path.join(TOOLS, 'playwright-core'), path.join(TOOLS, 'axe-core/axe.min.js')];
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const missing = [PLAYWRIGHT, AXE, CHROMIUM].filter((file) => !existsSync(file));
const inBrowser = missing.length && !process.env.CI ? it.skip : it;
const reason = missing.length ? ` (missing: ${missing.map((file) => path.basename(file)).join(', ')})` : '';

let provider: ForeignProvider;
let service: TestService;
let browser: Browser | undefined;

beforeAll(async () => {
  provider = await openForeignProvider();
  service = await startService({ settings: { ...provider.settings(), OAUTH_REGISTRATION: '1' } });
  await newUser(service, 'browser@example.com', 'owner');
});
afterAll(async () => {
  await browser?.close();
  await service.close();
  await provider.close();
});

/** A window of the browser, which is started for the first one. */
async function openPage(): Promise<{ page: Page; complaints: string[] }> {
  const { chromium } = (await import(PLAYWRIGHT)) as { chromium: { launch(options: object): Promise<Browser> } };
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: { width: 320, height: 640 } });
  const complaints: string[] = [];
  // Pages of the other provider are its own affair.
  page.on('console', (message) => {
    if (message.location().url.startsWith(service.url)) complaints.push(message.text());
  });
  return { page, complaints };
}

/**
 * Violations of the page as it stands, light and dark, and what does not fit at 320 pixels. It allows no script, so a
 * copy without its policy is looked at.
 */
async function violations(page: Page): Promise<string[]> {
  const { readFileSync } = await import('node:fs');
  const html = await page.content();
  const faults: string[] = [];
  for (const colorScheme of ['light', 'dark']) {
    const copy = (await browser?.newPage({ colorScheme, viewport: { width: 320, height: 640 } })) as Page;
    await copy.setContent(html);
    await copy.evaluate(readFileSync(AXE, 'utf8'));
    const found = (await copy.evaluate('axe.run()')) as { violations: { id: string; nodes: { html: string }[] }[] };
    faults.push(...found.violations.map(({ id, nodes }) => `${colorScheme}, ${id}: ${nodes[0]?.html}`));
    faults.push(...(await geometryFaults(copy)));
    const name = `${(await page.title()).replace(/\W+/g, '_')}-${colorScheme}.png`;
    if (process.env.PICTURES) await copy.screenshot({ path: path.join(process.env.PICTURES, name) });
    await copy.close();
  }
  return faults;
}

inBrowser(`log in, allow, and be sent back; enter a code${reason}`, async () => {
  const { page, complaints } = await openPage();
  await page.route(/^http:\/\/127\.0\.0\.1:49152\//, (route) => void route.fulfill({ status: 200, body: 'done' }));
  const client = await openClient(service);
  const asked = await client.ask();
  await page.goto(asked.url);
  expect(await violations(page)).toEqual([]);
  await page.fill('[name=email]', 'browser@example.com');
  await page.fill('[name=password]', PASSWORD);
  await page.click('[value=login]');
  expect(await page.title()).toContain('Allow Command line');
  expect(await violations(page)).toEqual([]);
  await page.click('[value=allow]');
  await page.waitForURL(/^http:\/\/127\.0\.0\.1:49152\/callback\?code=/);
  const begun = await fetch(`${service.url}/oauth/device_authorization`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: 'platform-cli', scope: 'read' }),
  });
  const { user_code, verification_uri_complete } = (await begun.json()) as Record<string, string>;
  await page.goto(verification_uri_complete as string);
  expect(await violations(page)).toEqual([]);
  await page.click('button');
  expect(await page.content()).toContain(user_code);
  expect(await violations(page)).toEqual([]);
  await page.click('[name=confirm]');
  await page.click('[value=allow]');
  expect(await page.title()).toBe('Device logged in');
  expect(await violations(page)).toEqual([]);
  expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([]);
});

inBrowser(`log in at another provider for a program that has registered itself; link, unlink${reason}`, async () => {
  const { page, complaints } = await openPage();
  const email = 'linked@example.com';
  await newUser(service, email, 'owner');
  provider.people.set('linked', { email, email_verified: true });
  await page.goto(`${service.url}/login?return_to=/account/logins`);
  expect(await violations(page)).toEqual([]);
  await page.fill('[name=email]', email);
  await page.fill('[name=password]', PASSWORD);
  await page.click('[value=login]');
  expect(await page.title()).toBe('Your logins');
  expect(await violations(page)).toEqual([]);
  await page.fill('[name=password]', PASSWORD);
  await page.click('button');
  await page.waitForURL(/\/interaction\//);
  await page.fill('[name=login]', 'linked');
  await page.fill('[name=password]', 'any');
  await page.click('[type=submit]');
  await page.click('[type=submit]');
  await page.waitForURL(/\/account\/logins$/);
  expect(await page.content()).toContain(`Keycloak, ${email}`);
  expect(await violations(page)).toEqual([]);
  const registered = await fetch(`${service.url}/oauth/register`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ client_name: 'Agent', redirect_uris: ['http://127.0.0.1:49152/callback'] }),
  });
  const { client_id } = (await registered.json()) as { client_id: string };
  const other = await openPage();
  await other.page.goto((await (await openClient(service, client_id)).ask()).url);
  expect(await violations(other.page)).toEqual([]);
  await other.page.click('form[action="/login/with/keycloak"] button');
  await other.page.waitForURL(/\/interaction\//);
  await other.page.fill('[name=login]', 'linked');
  await other.page.fill('[name=password]', 'any');
  await other.page.click('[type=submit]');
  await other.page.click('[type=submit]');
  await other.page.waitForURL(/\/oauth\/interaction\//);
  expect(await other.page.title()).toContain('Allow a program that calls itself “Agent”');
  expect(await violations(other.page)).toEqual([]);
  await page.click('[value=unlink]');
  expect(await page.content()).toContain('No login is linked.');
  expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([]);
});

/** A program on the web: its page opens the login in a popup, which hands the code to its opener. */
const OPENER = `<!doctype html><title>Shop</title>
  <button onclick="window.popup = window.open(document.body.dataset.url)">Log in</button>
  <script>onmessage = ({ data }) => (document.title = data)</script>`;
const CALLBACK = '<!doctype html><script>opener.postMessage(location.search, origin), close()</script>';

inBrowser(`a program on the web keeps the popup in which a person allows it${reason}`, async () => {
  const { page } = await openPage();
  await newUser(service, 'popup@example.com', 'owner');
  const redirect_uri = 'https://app.example.com/callback';
  await page.context().route(/^https:\/\/app\.example\.com\//, (route) => {
    const isBack = /\/callback/.test(route.request().url());
    void route.fulfill({ status: 200, contentType: 'text/html', body: isBack ? CALLBACK : OPENER });
  });
  const registered = await fetch(`${service.url}/oauth/register`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ client_name: 'Shop', redirect_uris: [redirect_uri] }),
  });
  const { client_id } = (await registered.json()) as { client_id: string };
  const { url, state } = await (await openClient(service, client_id)).ask({ redirect_uri });
  await page.goto('https://app.example.com/');
  await page.evaluate(`document.body.dataset.url = ${JSON.stringify(url)}`);
  const [popup] = await Promise.all([page.waitForEvent('popup'), page.click('button')]);
  await popup.fill('[name=email]', 'popup@example.com');
  expect(await page.evaluate('popup.closed')).toBe(false);
  await popup.fill('[name=password]', PASSWORD);
  await popup.click('[value=login]');
  await popup.click('[value=allow]');
  await page.waitForFunction(`document.title.includes('code=')`);
  expect(await page.title()).toContain(state);
});
