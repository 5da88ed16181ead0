/** @tier heavy @quarter 1 @covers engines/object_storage models/object_storage/bucket_object */
// A page in a real browser that uploads a file with a presigned form, across origins, and what its origin may not do.
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { amzDate, hmac, scopeText, signingKey } from '../../../core/protocols/sigv4';
import { startS3, type S3Service } from '../../support/object_storage/s3';
import { retryCheck } from '../../support/wait_for';

interface Page {
  goto(url: string): Promise<unknown>;
  evaluate(script: string): Promise<unknown>;
}
interface Browser {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

const PLAYWRIGHT = path.resolve(__dirname, '../../../node_modules/playwright-core');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const isMissing = ![PLAYWRIGHT, CHROMIUM].every((file) => existsSync(file));

let world: S3Service;
let site: Server;
let browser: Browser | undefined;

beforeAll(async () => {
  world = await startS3();
  site = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<title>shop</title>'));
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
}, 180_000);
afterAll(async () => {
  await browser?.close();
  site.close();
  await world.close();
});

(isMissing && !process.env.CI ? test.skip : test)(
  'a browser uploads with a presigned form (needs chromium and the packages of tools/)',
  async () => {
    const { id, name } = await world.bucket();
    const key = await world.key();
    const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    const { chromium } = (await import(PLAYWRIGHT)) as { chromium: { launch(options: object): Promise<Browser> } };
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    const page = await browser.newPage();
    await page.goto(origin);
    const upload = (fields: Record<string, string>, content: string): Promise<unknown> =>
      page.evaluate(`(async () => {
        const form = new FormData();
        for (const [name, value] of Object.entries(${JSON.stringify(fields)})) form.append(name, value);
        form.append('file', new File([${JSON.stringify(content)}], 'photo ä.txt', { type: 'text/plain' }));
        try {
          const answer = await fetch('${world.endpoint}/${name}', { method: 'POST', body: form });
          return answer.status + ' ' + answer.headers.get('etag');
        } catch (error) {
          return 'blocked';
        }
      })()`);
    expect(await upload(fieldsOf(name, key), 'not yet')).toBe('blocked');
    const rule = { allowed_origins: [origin], allowed_methods: ['POST'], expose_headers: ['etag'] };
    await world.service.call('PUT', `/v2/buckets/${id}/cors`, { body: { rules: [rule] } });
    await retryCheck(async () =>
      expect(await upload(fieldsOf(name, key), 'hello')).toBe('204 "5d41402abc4b2a76b9719d911017c592"'),
    );
    expect(await upload(fieldsOf(name, key), 'x'.repeat(101))).toMatch(/^400 /);
    expect(await upload({ ...fieldsOf(name, key), key: 'elsewhere' }, 'hello')).toMatch(/^403 /);
    const { body } = await world.service.call('GET', `/v2/buckets/${id}/objects`);
    expect(body.data).toMatchObject([{ key: 'form/photo ä.txt', size_bytes: 5 }]);
  },
  120_000,
);

/** What a program signs for a page: names below form/, at most 100 bytes. */
function fieldsOf(bucket: string, key: { access_key_id: string; secret_access_key: string }): Record<string, string> {
  const now = new Date();
  const scope = { date: amzDate(now).slice(0, 8), region: 'eu-central-1', service: 's3' };
  const fixed = {
    ...{ 'x-amz-algorithm': 'AWS4-HMAC-SHA256', 'x-amz-date': amzDate(now) },
    'x-amz-credential': `${key.access_key_id}/${scopeText(scope)}`,
  };
  const conditions = [
    ...[{ bucket }, ['starts-with', '$key', 'form/'], ['content-length-range', 1, 100]],
    ...Object.entries(fixed).map(([name, value]) => ({ [name]: value })),
  ];
  const expiration = new Date(Date.now() + 60_000).toISOString();
  const policy = Buffer.from(JSON.stringify({ expiration, conditions })).toString('base64');
  const signature = hmac(signingKey(key.secret_access_key, scope), policy).toString('hex');
  return { key: 'form/${filename}', ...fixed, policy, 'x-amz-signature': signature };
}
