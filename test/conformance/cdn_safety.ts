// What visitors must not be able to do to a cache, in every engine of CDN zones.
import type { CdnBench } from '../support/cdn/cdn_bench';
import { describeBreakOffs } from './cdn_safety_origins';

const MINUTE = { 'cache-control': 'max-age=60' };

/** Names that some origins heed, and that are no part of an object's key. */
const UNKEYED = [
  ...['forwarded', 'x-forwarded-host', 'x-forwarded-scheme', 'x-forwarded-proto', 'x-forwarded-port'],
  ...['x-forwarded-for', 'x-forwarded-server', 'x-forwarded-prefix', 'x-forwarded-ssl', 'x-original-url'],
  ...['x-rewrite-url', 'x-original-host', 'x-host', 'x-http-method-override', 'x-http-method', 'x-method-override'],
  ...['x-real-ip', 'true-client-ip', 'front-end-https', 'x-url-scheme', 'x_forwarded_host', 'x_original_url', 'proxy'],
];

/** Addresses that origins may take for `/good`: each is an address of its own here. */
const LIKE_GOOD = [
  ...['/safe/%67ood', '/safe/./good', '/safe/x/../good', '/safe/x/%2e%2e/good', '//safe/good', '/safe//good'],
  ...['/safe/good;v=1', '/safe/good%3Fv', '/safe%2Fgood', '/safe/x/..%2fgood', '/safe/good%00', '/safe/good%0d%0a'],
  ...['/safe/GOOD', '/safe/good/', '/safe/good%20', '/safe/x/%5c..%5cgood'],
];

export function describeCdnSafety(bench: () => CdnBench): void {
  describeHeaders(bench);
  describeAddresses(bench);
  describePeople(bench);
  describeLoops(bench);
  describeBreakOffs(bench);
}

function describeHeaders(bench: () => CdnBench): void {
  test('header fields that are no part of the key do not reach the origin', async () => {
    const host = await bench().zone('cdn_unkeyed');
    for (const name of UNKEYED) {
      const path = `/unkeyed/${name}`;
      bench().origin(path, [{ headers: MINUTE, reflects: true }]);
      const first = await bench().visit(host, path, { headers: { [name]: 'evil.example.org' } });
      expect([name, first.body]).toEqual([name, expect.not.stringContaining('evil')]);
      const second = await bench().visit(host, path);
      expect([name, second.body, second.headers['cache-status']]).toEqual([name, first.body, 'edge; hit']);
    }
  });

  test('fields that a visitor declares to be those of the connection are not seen by the origin', async () => {
    const host = await bench().zone('cdn_declared');
    bench().origin('/declared', [{ headers: MINUTE, reflects: true }]);
    const headers = { connection: 'close, cookie, x-forwarded-host, via', cookie: 'session=secret' };
    const first = await bench().visit(host, '/declared', { headers });
    expect(first.body).not.toContain('secret');
    expect((JSON.parse(first.body) as { asked: object }).asked).toMatchObject({
      ...{ via: expect.stringContaining('1.1 edge'), 'x-forwarded-host': host, 'x-forwarded-for': '192.0.2.9' },
    });
  });

  test.each([400, 413, 414, 431, 500])('what the origin answers %i to a bad field is not kept', async (status) => {
    const host = await bench().zone('cdn_oversized');
    const path = `/oversized/${status}`;
    bench().origin(path, [{ status, headers: status === 414 ? {} : MINUTE }, { headers: MINUTE }]);
    const headers = { 'x-oversized': 'x'.repeat(7_000), 'x-metacharacter': '%0a${jndi}' };
    expect((await bench().visit(host, path, { headers })).status).toBe(status);
    expect(await bench().visit(host, path)).toMatchObject({ status: 200, body: 'answer 2' });
  });

  test('a GET with a body is for the one who asked', async () => {
    const host = await bench().zone('cdn_fat');
    bench().origin('/fat', [{ headers: MINUTE, reflects: true }]);
    const fat = await bench().visit(host, '/fat', { body: 'a=evil', headers: { 'content-length': '6' } });
    expect([fat.status, fat.headers['cache-status']]).toEqual([200, 'edge; fwd=bypass']);
    expect((await bench().visit(host, '/fat')).body).not.toContain('content-length');
    const empty = await bench().visit(host, '/fat', { headers: { 'content-length': '0' } });
    expect([empty.headers['cache-status'], bench().asked('/fat').length]).toEqual(['edge; hit', 2]);
  });
}

function describeAddresses(bench: () => CdnBench): void {
  test('an address that is written otherwise is another one', async () => {
    const host = await bench().zone('cdn_alike');
    for (const path of LIKE_GOOD) {
      bench().origin(path, [{ headers: MINUTE, body: 'evil' }]);
      expect([path, (await bench().visit(host, path)).body]).toEqual([path, 'evil']);
      expect([path, bench().asked(path)[0]?.target]).toEqual([path, path]);
    }
    bench().origin('/safe/good', [{ headers: MINUTE, body: 'good' }]);
    for (let turn = 0; turn < 2; turn += 1) expect((await bench().visit(host, '/safe/good')).body).toBe('good');
    expect((await bench().visit(host, '/safe/good?v')).body).toBe('good');
    expect(bench().asked('/safe/good')).toHaveLength(2);
  });

  test('fragments and backslashes are refused', async () => {
    const host = await bench().zone('cdn_malformed');
    for (const target of ['/safe/x#y', '/safe/x?y#z', '/safe\\x', '/\\evil.example.org/'])
      expect([target, (await bench().visit(host, target)).status]).toEqual([target, 400]);
    expect((await bench().visit(host, '/safe/x?a=\\')).status).toBe(200);
  });

  test('the host of an absolute address is not passed on, and it is the same object', async () => {
    const host = await bench().zone('cdn_absolute');
    bench().origin('/absolute', [{ headers: MINUTE, reflects: true }]);
    const first = await bench().visit(host, `http://${host}/absolute`);
    expect(JSON.parse(first.body)).toMatchObject({ url: '/absolute', asked: { host: 'origin.example.com' } });
    expect((await bench().visit(host, '/absolute')).headers['cache-status']).toBe('edge; hit');
  });

  test('a query string that is ignored does not reach the origin', async () => {
    const host = await bench().zone('cdn_ignored', { query_string: 'ignore' });
    bench().origin('/ignored', [{ headers: MINUTE, reflects: true }]);
    const first = await bench().visit(host, '/ignored?q=evil');
    expect(first.body).not.toContain('evil');
    expect((await bench().visit(host, '/ignored')).body).toBe(first.body);
    await bench().visit(host, '/ignored?q=kept', { method: 'POST' });
    expect(
      bench()
        .asked('/ignored')
        .map(({ target }) => target),
    ).toEqual(['/ignored', '/ignored?q=kept']);
  });
}

/** Of gateways, clouds and frameworks, which no list of names has all of. */
const CREDENTIALS = [
  ...[
    'x-api-key',
    'apikey',
    'x-auth-token',
    'x-session-token',
    'x-amz-security-token',
    'x-vault-token',
    'private-token',
  ],
  ...['x-goog-iap-jwt-assertion', 'cf-access-jwt-assertion', 'x-amzn-oidc-data', 'x-ms-client-principal-id', 'dpop'],
  ...[
    'x-shopify-access-token',
    'x-auth-request-email',
    'x-user-id',
    'x-ssl-client-cert',
    'x-tenant',
    'sec-token-binding',
  ],
];

function describePeople(bench: () => CdnBench): void {
  const said = ['', 'public', 'must-revalidate', 'max-age=60'];
  test.each(said)('a page of an account is not kept for the end of its address, with "%s"', async (text) => {
    const host = await bench().zone('cdn_deceived');
    for (const name of ['cookie', 'authorization', ...CREDENTIALS]) {
      const path = `/account/${text}${name}/nothing.css`;
      const headers = { 'content-type': 'text/css', ...(text && { 'cache-control': text }) };
      bench().origin(path, [{ headers, reflects: true }]);
      const own = await bench().visit(host, path, { headers: { [name]: 'secret' } });
      expect([name, own.body]).toEqual([name, expect.stringContaining('secret')]);
      expect([name, (await bench().visit(host, path)).body]).toEqual([name, expect.not.stringContaining('secret')]);
    }
  });

  test('a field that nobody knows may say who somebody is, where the answer has no lifetime', async () => {
    const host = await bench().zone('cdn_unknown_field');
    const ask = async (path: string, value: string | null): Promise<string> =>
      (await bench().visit(host, path, { headers: value === null ? {} : { 'x-shop': value } })).body;
    bench().origin('/silent.css', [{ headers: { 'content-type': 'text/css' }, reflects: true }]);
    expect(await ask('/silent.css', 'secret')).toContain('secret');
    expect(await ask('/silent.css', null)).not.toContain('secret');
    bench().origin('/said', [{ headers: MINUTE, reflects: true }]);
    expect(await ask('/said', 'everybody')).toBe(await ask('/said', null));
    bench().origin('/named', [{ headers: { vary: 'X-Shop' }, reflects: true }]);
    expect(await ask('/named', 'one')).toBe(await ask('/named', 'one'));
    expect(await ask('/named', 'two')).toContain('two');
    expect(bench().asked('/named')).toHaveLength(2);
  });

  test('what browsers, programs and proxies send by themselves says nothing', async () => {
    const host = await bench().zone('cdn_ordinary_fields');
    bench().origin('/page', [{ headers: { 'content-type': 'text/html' } }]);
    const headers = {
      ...{
        'user-agent': 'Mozilla/5.0',
        accept: '*/*',
        'accept-language': 'de',
        dnt: '1',
        'sec-ch-ua': '"a"',
        te: 'trailers',
      },
      ...{
        'sec-fetch-site': 'none',
        'sec-fetch-mode': 'navigate',
        'upgrade-insecure-requests': '1',
        priority: 'u=0, i',
      },
      ...{ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'x-requested-with': 'fetch' },
      ...{ 'x-forwarded-for': '192.0.2.1', 'x-request-id': '1', 'save-data': 'on', referer: 'https://example.com/' },
    };
    await bench().visit(host, '/page', { headers });
    expect((await bench().visit(host, '/page')).headers['cache-status']).toBe('edge; hit');
  });

  test('streams of events are not shared', async () => {
    const host = await bench().zone('cdn_events');
    bench().origin('/events', [{ headers: { 'content-type': 'text/event-stream' }, body: 'data: x\n\n' }]);
    for (let turn = 0; turn < 2; turn += 1) await bench().visit(host, '/events');
    expect(bench().asked('/events')).toHaveLength(2);
  });
}

function describeLoops(bench: () => CdnBench): void {
  test('a request that comes back is answered 508, and that is not kept', async () => {
    const host = await bench().zone('cdn_loops');
    bench().origin('/loop', [{ headers: MINUTE, reflects: true }]);
    const others = Array.from({ length: 9 }, (_, index) => `cdn${index}`).join(', ');
    const loops: Record<string, string>[] = [
      { 'cdn-loop': 'edge; zone=cdn_loops' },
      { 'cdn-loop': others },
      { via: '1.1 edge, '.repeat(9) },
    ];
    for (const headers of loops) expect((await bench().visit(host, '/loop', { headers })).status).toBe(508);
    const passed = { 'cdn-loop': 'another', via: '1.1 proxy' };
    const { status, body } = await bench().visit(host, '/loop', { headers: passed });
    const { asked } = JSON.parse(body) as { asked: Record<string, string> };
    expect([status, asked['cdn-loop'], asked.via]).toEqual([
      ...[200, 'another, edge; zone=cdn_loops', '1.1 proxy, 1.1 edge'],
    ]);
  });
}
