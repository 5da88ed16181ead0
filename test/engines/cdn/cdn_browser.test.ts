/** @tier heavy @quarter 4 @covers engines/cdn/cdn engines/object_storage/settings/cors */
// Pages of two sites in a real browser that load fonts and modules of a bucket through a CDN zone: who comes first does
// not decide for the others.
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { freePort } from '../../support/processes/free_port';
import { startService, type Answer, type TestService } from '../../support/service';

interface Page {
  goto(url: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
}
interface Context {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}
interface Browser {
  newContext(): Promise<Context>;
  close(): Promise<void>;
}

const PLAYWRIGHT = path.resolve(__dirname, '../../../node_modules/playwright-core');
const FONT = path.join(PLAYWRIGHT, 'lib/vite/traceViewer/codicon.DCmgc-ay.ttf');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const isMissing = ![PLAYWRIGHT, FONT, CHROMIUM].every((file) => existsSync(file));
const described = isMissing && !process.env.CI ? describe.skip : describe;

jest.setTimeout(120_000);

const sites: Server[] = [];
const origins: string[] = [];
let browser: Browser;

beforeAll(async () => {
  for (const title of ['one', 'two']) {
    const site = createServer((_, response) =>
      response.setHeader('content-type', 'text/html').end(`<title>${title}</title>`),
    );
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    sites.push(site);
    origins.push(`http://127.0.0.1:${(site.address() as AddressInfo).port}`);
  }
  if (isMissing) return;
  const { chromium } = (await import(PLAYWRIGHT)) as { chromium: { launch(options: object): Promise<Browser> } };
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
});
afterAll(async () => {
  await browser?.close();
  for (const site of sites) site.close();
});

const FILES: Record<string, { content: string | Buffer; type: string }> = {
  'app.js': { content: 'export const answer = 42;', type: 'text/javascript' },
  'icons.ttf': { content: isMissing ? '' : readFileSync(FONT), type: 'font/ttf' },
  'data.json': { content: '{"answer":42}', type: 'application/json' },
};

/** What a page gets: a font, a module, and data that it asks for with a header of its own, which needs a preflight. */
const load = (base: string): string => `(async () => {
  const or = (promise) => promise.catch((error) => 'blocked: ' + error.message);
  const answerOf = async (path) => (await (await fetch(path, { headers: { 'x-shop': '1' } })).json()).answer;
  return {
    module: await or(import('${base}/app.js').then(({ answer }) => answer)),
    font: await or(new FontFace('Icons', 'url(${base}/icons.ttf)').load().then(({ status }) => status)),
    data: await or(answerOf('${base}/data.json')),
  };
})()`;

const LOADED = { module: 42, font: 'loaded', data: 42 };

described('a browser and the zones of the platform (needs chromium and the packages of tools/)', () => {
  let service: TestService;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    service = await startService({
      worker: true,
      settings: { ALLOW_PRIVATE_ADDRESSES: '1', INGRESS_PORT: String(port), S3_PORT: String(await freePort()) },
    });
  });
  afterAll(() => service?.close());

  const call = async (method: string, at: string, body?: object): Promise<Answer['body']> => {
    const answer = await service.call(method, at, { ...(body && { body }), headers: { Prefer: 'wait=20' } });
    expect([answer.status, answer.text]).toEqual([expect.any(Number), expect.anything()]);
    expect(answer.status).toBeLessThan(300);
    return answer.body;
  };

  async function zoneOver(allowed_origins: string[]): Promise<string> {
    const bucket = await call('POST', '/v2/buckets', { name: `fonts-${Math.random().toString(36).slice(2)}` });
    const rule = { allowed_origins, allowed_methods: ['GET', 'HEAD'], allowed_headers: ['x-shop'] };
    await call('PUT', `/v2/buckets/${bucket.id}/cors`, { rules: [rule] });
    for (const [key, { content, type }] of Object.entries(FILES)) {
      const { url } = await call('POST', `/v2/buckets/${bucket.id}/presign`, { method: 'PUT', key });
      const put = await fetch(url, { method: 'PUT', body: content as string, headers: { 'content-type': type } });
      expect(put.status).toBe(200);
    }
    const origin = { type: 'bucket', bucket_id: bucket.id };
    const zone = await call('POST', '/v2/cdn_zones', { name: bucket.name, origin });
    return `http://${zone.hostname}:${port}`;
  }

  /** Who follows a link sends no Origin. */
  async function openLinks(base: string): Promise<void> {
    const visitor = await browser.newContext();
    for (const key of ['app.js', 'data.json']) await (await visitor.newPage()).goto(`${base}/${key}`);
    await visitor.close();
  }

  /** A visitor with a cache of its own. */
  async function visitFrom(site: string, base: string): Promise<unknown> {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(site);
    const loaded = await page.evaluate(load(base));
    await context.close();
    return loaded;
  }

  test.each([
    ['for both sites', () => origins],
    ['for everybody', () => ['*']],
  ])('rules %s: all visitors load fonts, modules and data', async (_, allowed) => {
    const base = await zoneOver(allowed());
    const [one = '', two = ''] = origins;
    await openLinks(base);
    expect(await visitFrom(one, base)).toEqual(LOADED);
    expect(await visitFrom(two, base)).toEqual(LOADED);
    expect(await visitFrom(one, base)).toEqual(LOADED);
  });

  test('rules for one site: the other one stays blocked', async () => {
    const base = await zoneOver([String(origins[1])]);
    const blocked = expect.stringContaining('blocked');
    expect(await visitFrom(String(origins[0]), base)).toEqual({ module: blocked, font: blocked, data: blocked });
    expect(await visitFrom(String(origins[1]), base)).toEqual(LOADED);
  });
});
