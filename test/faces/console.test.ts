/** @tier heavy @quarter 4 @covers rest/console */
// The console and GraphiQL in a real browser. Needs Debian's chromium and `npm ci`; CI must
// have both.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { startService, type TestService } from '../support/service';

interface Locator {
  innerText(): Promise<string>;
  inputValue(): Promise<string>;
  fill(text: string): Promise<void>;
  click(): Promise<void>;
  waitFor(): Promise<void>;
  focus(): Promise<void>;
  first(): Locator;
  count(): Promise<number>;
}

interface Page {
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  locator(selector: string): Locator;
  on(event: string, listen: (seen: { url(): string; type(): string; text(): string; message: string }) => void): void;
  waitForFunction(script: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
  keyboard: { press(key: string): Promise<void> };
}

interface Browser {
  newPage(options: object): Promise<Page>;
  close(): Promise<void>;
}

const PLAYWRIGHT = path.resolve(__dirname, '../../node_modules/playwright-core');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const missing = [PLAYWRIGHT, CHROMIUM].filter((file) => !existsSync(file));
const inBrowser = missing.length && !process.env.CI ? it.skip : it;
const reason = missing.length ? ` (missing: ${missing.map((file) => path.basename(file)).join(', ')})` : '';

let service: TestService;
let browser: Browser | undefined;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await browser?.close();
  await service.close();
});

/** A page, with everything that a browser complains about and every request that leaves for another host. */
async function openPage(options = {}): Promise<{ page: Page; complaints: string[] }> {
  const { chromium } = (await import(PLAYWRIGHT)) as { chromium: { launch(options: object): Promise<Browser> } };
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  const page = await browser.newPage(options);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(service.url) && !request.url().startsWith('data:'))
      complaints.push(`request to ${request.url()}`);
  });
  return { page, complaints };
}

/** Opens an operation of the console, sends it as it is prefilled, gives the status and the body that it shows. */
async function execute(page: Page, group: string, operation: string): Promise<{ status: string; body: string }> {
  await page.locator('#filter').fill(operation);
  await page.locator(`#${operation} > summary`).click();
  await page.locator(`#${operation} button.try`).click();
  const block = `#operations-${group}-${operation}`;
  await page.locator(`${block} button.execute`).click();
  const answer = `${block} .live-responses-table .response`;
  await page.locator(answer).waitFor();
  return {
    status: await page.locator(`${answer} .response-col_status`).innerText(),
    body: await page.locator(`${answer} .response-col_description .microlight >> nth=0`).innerText(),
  };
}

describe('the pages', () => {
  it.each(['/v2/docs', '/graphql'])('%s refers to no other host and allows none', async (place) => {
    const response = await fetch(service.url + place, { headers: { Accept: 'text/html' } });
    const html = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    const loaded = [...html.matchAll(/<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"/g)].map((match) => match[1]);
    expect(loaded.filter((address) => !address?.startsWith('/v2/docs/assets/'))).toEqual([]);
    expect(policy).not.toMatch(/https?:\/\/|unsafe-eval/);
    const assets = [...html.matchAll(/(?:src|href)="(\/v2\/docs\/assets\/[^"]+)"/g)].map((match) => match[1] as string);
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      const file = await fetch(service.url + asset);
      expect([asset, file.status]).toEqual([asset, 200]);
      expect(file.headers.get('cache-control')).toContain('immutable');
      expect(file.headers.get('x-request-id')).toBeTruthy();
      await file.arrayBuffer();
    }
  });

  it('the reference has every operation with its samples, written on the server', async () => {
    const html = await (await fetch(`${service.url}/v2/docs`)).text();
    const { paths } = (await (await fetch(`${service.url}/v2/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId));
    expect(ids.filter((id) => !html.includes(`<details class="operation" id="${id}"`))).toEqual([]);
    for (const label of ['curl', 'JavaScript', 'Python'])
      expect(html.split(`>${label}</label>`)).toHaveLength(ids.length + 1);
    const anchors = new Set([...html.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]));
    const links = [...html.matchAll(/href="#([^"]+)"/g)].map((match) => match[1]);
    expect(links.filter((link) => !anchors.has(link))).toEqual([]);
    expect(html).not.toMatch(/\{\{|undefined|\[object/);
  });

  it('an unknown asset is a problem document', async () => {
    const response = await fetch(`${service.url}/v2/docs/assets/nothing.js`);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([404, 'route_not_found']);
  });
});

describe('in a browser', () => {
  inBrowser(
    `the console keeps key and project, and executes a GET and a prefilled POST${reason}`,
    async () => {
      const { page, complaints } = await openPage();
      await page.goto(`${service.url}/v2/docs`);
      await page.locator('#key').fill(service.key);
      await page.locator('#project').fill(service.project);
      await page.locator('#access button[type=submit]').click();

      const created = await execute(page, 'Volumes', 'createVolume');
      expect(created.status).toMatch(/^201/);
      expect(JSON.parse(created.body)).toMatchObject({ name: 'uploads', project_id: service.project });

      await page.reload();
      expect(await page.locator('#project').inputValue()).toBe(service.project);
      const listed = await execute(page, 'Volumes', 'listVolumes');
      expect(listed.status).toMatch(/^200/);
      expect(JSON.parse(listed.body)).toMatchObject({ data: [{ name: 'uploads' }], next_cursor: null });
      const own = await execute(page, 'Projects', 'getProject');
      expect(own.status).toMatch(/^200/);
      expect(complaints).toEqual([]);
    },
    60_000,
  );

  inBrowser(
    `the reference is there without waiting, by keyboard, and on a phone${reason}`,
    async () => {
      const { page, complaints } = await openPage({ viewport: { width: 390, height: 844 }, isMobile: true });
      await page.goto(`${service.url}/v2/docs#createVolume`);
      // Opened by its address, with its samples; nothing of the console was loaded for it.
      const samples = page.locator('#createVolume .samples pre');
      expect(await samples.first().innerText()).toMatch(/^curl/);
      await page.locator('#createVolume-0').focus();
      await page.keyboard.press('ArrowRight');
      expect(await page.locator('#createVolume .samples pre:visible').innerText()).toContain('fetch(');
      expect(await page.locator('script[src*=swagger], link[href*=swagger]').count()).toBe(0);
      await page.locator('#getVolume > summary').focus();
      await page.keyboard.press('Enter');
      await page.locator('#getVolume .body').waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      // The address that Swagger UI gave to an operation.
      await page.goto(`${service.url}/v2/docs#/Projects/getProject`);
      await page.locator('#getProject .body').waitFor();
      expect(complaints).toEqual([]);
    },
    60_000,
  );

  inBrowser(
    `GraphiQL reads the schema and runs a query${reason}`,
    async () => {
      const { page, complaints } = await openPage();
      // Opened without a key first: its editor then keeps empty headers, and the key of the console must count.
      await page.goto(`${service.url}/graphql`);
      await page.locator('.graphiql-execute-button').waitFor();
      await page.goto(`${service.url}/v2/docs`);
      await page.locator('#key').fill(service.key);
      await page.locator('#project').fill(service.project);
      await page.locator('#access button[type=submit]').click();
      await page.goto(`${service.url}/graphql`);
      await page.locator('.graphiql-execute-button').click();
      await page.waitForFunction(`document.querySelector('.result-window')?.innerText.includes('next_cursor')`);
      await page.locator('button[aria-label="Show Documentation Explorer"]').click();
      await page.locator('.graphiql-doc-explorer-content >> text=Mutation >> nth=0').waitFor();
      expect(complaints).toEqual([]);
    },
    60_000,
  );
});
