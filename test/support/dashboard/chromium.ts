// The dashboard as people see it: built, served by a real service, in Debian's Chromium.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { mintId } from '../../../core/ids';
import { storedPassword } from '../contract/password';
import { hasProgram } from '../runner/has_program';
import { named } from '../runner/programs';
import { ROOT } from '../runner/repository';
import type { TestService } from '../service';
import type { Browser, Locator, Page, Playwright } from './playwright';

const DASHBOARD = path.join(ROOT, 'clients/dashboard');
const PLAYWRIGHT = path.join(ROOT, 'node_modules/playwright-core');
const AXE = path.join(ROOT, 'node_modules/axe-core/axe.min.js');
/** A test may put a program of its own in its place before the first window. */
const chromiumProgram = (): string => process.env.CHROMIUM ?? '/usr/bin/chromium';
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
export const PASSWORD = 'a long enough password';
export const WIDTHS = [320, 768, 1440];

export type { Page };

/** A window of its own, with what it has complained of and where it has asked. */
export interface Window {
  page: Page;
  /** Errors of the console, and of the policy of the page. */
  complaints: string[];
  /** Origins that were asked, each once. */
  origins: Set<string>;
}

/** The tests of a file are skipped by name, outside of CI, where the browser is missing. */
export function fileNeedsChromium(): void {
  if (hasProgram('chromium') || existsSync(chromiumProgram()) || process.env.CI) return;
  const skipped = named(test.skip, ' (needs: chromium)');
  Object.assign(globalThis, { test: skipped, it: skipped, beforeAll: () => {}, afterAll: () => {} });
}

export function buildDashboard(): void {
  execFileSync(process.execPath, [path.join(DASHBOARD, 'build.mjs'), '--if-stale'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** What the browser says of requests while other tests make and remove networks of this machine. */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';
const OWNER = 'owner@example.org';

/**
 * Around the tests of a file: builds the pages, starts a service, and signs its owner in.
 * @param start also makes the owner; what it answers is closed at the end
 * @param use gets the window of the owner, who has signed in
 * @param options of the window
 */
export function dashboardOf(
  start: () => Promise<Pick<TestService, 'url' | 'close'>>,
  use: (window: Window) => void | Promise<void>,
  options: object = {},
): void {
  fileNeedsChromium();
  let started: Pick<TestService, 'url' | 'close'> | undefined;
  beforeAll(async () => {
    buildDashboard();
    started = await start();
    const window = await openWindow(started, options);
    await signIn(window, OWNER);
    await use(window);
  }, 120_000);
  afterAll(async () => {
    await closeBrowser();
    await started?.close();
  });
}

let browser: Browser | undefined;

/** Colours change at once, so that no contrast is measured on the way from light to dark. */
export async function openWindow(service: Pick<TestService, 'url'>, options: object = {}): Promise<Window> {
  const { chromium } = (await import(PLAYWRIGHT)) as Playwright;
  // Names of examples are on this machine.
  const args = ['--no-sandbox', '--host-resolver-rules=MAP *.example.com 127.0.0.1'];
  browser ??= await chromium.launch({ executablePath: chromiumProgram(), args });
  const context = await browser.newContext({
    baseURL: service.url,
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.goto = untilNetworkStays(page.goto.bind(page));
  page.reload = untilNetworkStays(page.reload.bind(page));
  const [complaints, origins]: [string[], Set<string>] = [[], new Set()];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !message.text().includes(NETWORK_CHANGED))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => origins.add(new URL(request.url()).origin));
  return { page, complaints, origins };
}

function untilNetworkStays<Given extends unknown[], Found>(
  go: (...given: Given) => Promise<Found>,
): (...given: Given) => Promise<Found> {
  return async (...given) => {
    for (let left = 5; ; left -= 1) {
      try {
        return await go(...given);
      } catch (error) {
        if (!left || !String(error).includes(NETWORK_CHANGED)) throw error;
      }
    }
  };
}

export async function closeBrowser(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

/** A person with a role in the first project, who can sign in with PASSWORD. */
export async function newPerson(
  { sql, project }: Pick<TestService, 'sql' | 'project'>,
  email: string,
  role: 'owner' | 'developer' | 'viewer',
): Promise<void> {
  const [account, user] = [mintId('acc'), mintId('usr')];
  await sql('insert into accounts (id, name) values ($1, $2)', [account, email]);
  await sql('insert into users (id, account_id, email, name, password_hash) values ($1, $2, $3, $4, $5)', [
    ...[user, account, email, email.split('@')[0], storedPassword(PASSWORD)],
  ]);
  await sql('insert into members (project_id, user_id, role) values ($1, $2, $3)', [project, user, role]);
}

export async function signIn({ page }: Window, email: string, to = '/'): Promise<void> {
  await page.goto(`/sign-in?return_to=${encodeURIComponent(to)}`);
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL(to);
  await settled(page);
}

/** Opens a page, and waits until it has what it asked for. */
export async function visit(page: Page, to: string): Promise<void> {
  await page.goto(to);
  await settled(page);
}

export async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
}

/** Drags a file or a folder of this computer onto an element, and drops it there, as a person does. */
export async function dropOn(page: Page, target: Locator, place: string): Promise<void> {
  const { x = 0, y = 0, width = 0, height = 0 } = (await target.boundingBox()) ?? {};
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [place], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await session.send('Input.dispatchDragEvent', { type, x: x + width / 2, y: y + height / 2, data });
  await session.detach();
}

/** What axe finds wrong with the page as it stands. */
export async function violations(page: Page): Promise<string[]> {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(readFileSync(AXE, 'utf8'));
  const found = (await page.evaluate(
    `axe.run({ runOnly: ${JSON.stringify(RULES)}, resultTypes: ['violations'] })`,
  )) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
}

/** Pixels by which the page is wider than the screen. */
export async function overflow(page: Page): Promise<number> {
  return (await page.evaluate(
    'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)',
  )) as number;
}

/** Where SCREENSHOTS is set, writes a picture of the page for the documentation. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS) await page.screenshot({ path: path.join(ROOT, 'docs/images', `${name}.png`) });
}
