/** @user any */
// Operations: listCdnZones, createCdnZone, getCdnZone, updateCdnZone, deleteCdnZone, getCdnZoneMetrics.
// CDN zones: the operations, and what the cache of the host answers for them.
import { activeZone, newName, origin, service, setUpCdn, visit, type Body } from '../support/cdn/cdn_cases';
import { waitFor } from '../support/wait_for';

setUpCdn();

describe('zones', () => {
  it('answer everything that is promised', async () => {
    const made = await service.call('POST', '/v2/cdn_zones', {
      body: { name: 'promised', origin: { type: 'url', url: `${origin.url}/` } },
    });
    expect([made.status, made.body]).toMatchObject([
      201,
      {
        ...{ name: 'promised', enabled: true, compression: true, force_https: true, status: 'provisioning' },
        hostname: expect.stringMatching(/^promised-[a-z0-9]{6}\.cdn\.localhost$/),
        origin: { type: 'url', url: origin.url, bucket_id: null, application_id: null, host_header: null },
        cache: {
          ...{ default_ttl_seconds: 86400, browser_ttl_seconds: null, respect_origin_headers: true },
          ...{ query_string: 'include', serve_stale: false },
        },
      },
    ]);
  });

  it('refuse a field of another type, a missing one, a path, and what is not there', async () => {
    const refused: [object, string, string][] = [
      [{ type: 'url', url: origin.url, bucket_id: 'bkt_00000000000000000000000000' }, 'origin.bucket_id', 'depends_on'],
      [{ type: 'application' }, 'origin.application_id', 'required'],
      [
        { type: 'bucket', bucket_id: 'bkt_00000000000000000000000000', host_header: 'www.example.com' },
        'origin.host_header',
        'depends_on',
      ],
      [{ type: 'url', url: 'https://example.com/path' }, 'origin.url', 'invalid_format'],
    ];
    for (const [wrong, field, code] of refused) {
      const answer = await service.call('POST', '/v2/cdn_zones', { body: { name: newName(), origin: wrong } });
      expect([answer.status, answer.body.errors]).toMatchObject([422, [{ field, code }]]);
    }
    const unknown = await service.call('POST', '/v2/cdn_zones', {
      body: { name: newName(), origin: { type: 'application', application_id: 'app_00000000000000000000000000' } },
    });
    expect([unknown.body.code, unknown.body.field]).toEqual(['reference_not_found', 'origin.application_id']);
  });

  it('are switched off and on, and merge what changes of their cache', async () => {
    const zone = await activeZone();
    const path = `/v2/cdn_zones/${String(zone.id)}`;
    const body = { enabled: false, cache: { browser_ttl_seconds: 60 } };
    const off = await service.call('PATCH', path, { body, headers: { Prefer: 'wait=20' } });
    expect(off.body).toMatchObject({
      status: 'disabled',
      cache: { default_ttl_seconds: 86400, browser_ttl_seconds: 60 },
    });
    expect((await visit(zone.hostname, '/off')).status).toBe(503);
    const on = await service.call('PATCH', path, { body: { enabled: true }, headers: { Prefer: 'wait=20' } });
    expect(on.body.status).toBe('active');
    const seen = await visit(zone.hostname, '/on?max-age=100');
    expect([seen.status, seen.headers['cache-control']]).toEqual([200, 'max-age=60']);
  });

  it('go with everything', async () => {
    const zone = await activeZone();
    expect((await visit(zone.hostname, '/x')).status).toBe(200);
    expect((await service.call('DELETE', `/v2/cdn_zones/${String(zone.id)}`)).status).toBe(204);
    await waitFor('nobody answers', async () => (await visit(zone.hostname, '/x')).status === 404);
  });
});

describe('the cache', () => {
  it('asks the origin once, and says so', async () => {
    const zone = await activeZone();
    const first = await visit(zone.hostname, '/once?max-age=60');
    expect([first.status, first.headers['cache-status']]).toEqual([200, 'edge; fwd=uri-miss; stored']);
    const second = await visit(zone.hostname, '/once?max-age=60');
    expect([second.body, second.headers['cache-status']]).toEqual([first.body, 'edge; hit']);
    expect(Number(second.headers.age)).toBeLessThan(60);
    expect(second.headers.age).toMatch(/^\d+$/);
    expect(origin.requests('/once')).toHaveLength(1);
    const head = await visit(zone.hostname, '/once?max-age=60', {}, 'HEAD');
    expect([head.status, head.headers['content-length'], head.body]).toEqual([200, String(first.body.length), '']);
  });

  it.each([
    ['no-store', '/private?cc=no-store'],
    ['Private, in capitals', '/private?cc=Private'],
    ['the least of two lives', '/private?cc=max-age%3D60%2C+max-age%3D0'],
    ['a cookie that is set', '/private?max-age=60&set-cookie=1'],
    ['an answer that depends on everything', '/private?max-age=60&vary=*'],
  ])('does not keep %s', async (_, target) => {
    const zone = await activeZone();
    const before = origin.requests('/private').length;
    for (let turn = 0; turn < 2; turn += 1) await visit(zone.hostname, target);
    expect(origin.requests('/private').length - before).toBe(2);
  });

  it('keeps nothing for somebody who was recognised, unless the origin says that it is for everybody', async () => {
    const zone = await activeZone();
    await visit(zone.hostname, '/account', { Cookie: 'session=1' });
    expect((await visit(zone.hostname, '/account')).headers['cache-status']).toBe('edge; fwd=uri-miss; stored');
    await visit(zone.hostname, '/logo?cc=public%2C+max-age%3D60', { Cookie: 'session=1' });
    expect((await visit(zone.hostname, '/logo?cc=public%2C+max-age%3D60')).headers['cache-status']).toBe('edge; hit');
  });

  it('keeps one object for each value of a header that counts', async () => {
    const zone = await activeZone();
    const of = async (language: string): Promise<string> =>
      (await visit(zone.hostname, '/vary?max-age=60&vary=accept-language', { 'Accept-Language': language })).body;
    expect([await of('de'), await of('en'), await of('de')]).toEqual([
      expect.stringContaining('"accept-language":"de"'),
      expect.stringContaining('"accept-language":"en"'),
      expect.stringContaining('"accept-language":"de"'),
    ]);
    expect(origin.requests('/vary')).toHaveLength(2);
  });

  it('sends parts, and 304 where nothing changed', async () => {
    const zone = await activeZone();
    const whole = await visit(zone.hostname, '/parts?max-age=60&etag=abc');
    const part = await visit(zone.hostname, '/parts?max-age=60&etag=abc', { Range: 'bytes=2-5' });
    expect([part.status, part.body]).toEqual([206, whole.body.slice(2, 6)]);
    const same = await visit(zone.hostname, '/parts?max-age=60&etag=abc', { 'If-None-Match': '"abc"' });
    expect([same.status, same.body]).toEqual([304, '']);
    const cold = await visit(zone.hostname, '/cold?max-age=60', { Range: 'bytes=0-0' });
    expect([cold.status, cold.body.length]).toEqual([206, 1]);
    expect(origin.requests('/cold')[0]?.headers.range).toBeUndefined();
  });

  it('asks whether a stale object still holds', async () => {
    const zone = await activeZone();
    const target = '/stale?max-age=0&etag=v1';
    await visit(zone.hostname, target);
    const again = await visit(zone.hostname, target);
    expect([again.status, again.headers['cache-status']]).toEqual([200, 'edge; hit; fwd=stale; fwd-status=304']);
    expect(origin.requests('/stale')[1]?.headers['if-none-match']).toBe('"v1"');
  });

  it('serves what is stale while the origin is away, if it may', async () => {
    const zone = await activeZone({ cache: { serve_stale: true } });
    const strict = await activeZone();
    for (const { hostname } of [zone, strict]) await visit(hostname, '/away?max-age=0&etag=v1');
    origin.breakDown('/away');
    expect((await visit(zone.hostname, '/away?max-age=0&etag=v1')).headers['cache-status']).toBe(
      'edge; hit; detail=stale',
    );
    expect((await visit(strict.hostname, '/away?max-age=0&etag=v1')).status).toBe(502);
  });

  it('asks once for many who come together, and never keeps half of an answer', async () => {
    const zone = await activeZone();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => visit(zone.hostname, '/slow?max-age=60&ms=300')),
    );
    expect(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size).toBe(1);
    expect(origin.requests('/slow')).toHaveLength(1);
    // It is small, and none of it was sent on yet.
    for (const turn of [1, 2]) {
      expect((await visit(zone.hostname, '/half?max-age=60&half=1')).status).toBe(502);
      expect(origin.requests('/half')).toHaveLength(turn);
    }
  });

  it('compresses texts, passes writes through, and forgets what they changed', async () => {
    const zone = await activeZone();
    const text = await visit(zone.hostname, '/text?max-age=60&bytes=5000', { 'Accept-Encoding': 'gzip' });
    expect([text.headers['content-encoding'], text.headers.vary]).toEqual(['gzip', 'Accept-Encoding']);
    await visit(zone.hostname, '/item?max-age=60');
    expect((await visit(zone.hostname, '/item?max-age=60', {}, 'POST')).status).toBe(200);
    expect((await visit(zone.hostname, '/item?max-age=60')).headers['cache-status']).toContain('uri-miss');
  });

  it('hides headers that no key holds, and breaks loops', async () => {
    const zone = await activeZone();
    await visit(zone.hostname, '/poison?max-age=60', {
      'X-Forwarded-Host': 'evil.example',
      'X-Original-URL': '/admin',
    });
    const [seen] = origin.requests('/poison');
    expect([seen?.headers['x-forwarded-host'], seen?.headers['x-original-url']]).toEqual([zone.hostname, undefined]);
    const loop = await visit(zone.hostname, '/loop', { 'CDN-Loop': String(seen?.headers['cdn-loop']) });
    expect(loop.status).toBe(508);
  });

  it('counts exactly', async () => {
    const zone = await activeZone();
    for (let turn = 0; turn < 4; turn += 1) await visit(zone.hostname, '/counted?max-age=60');
    const metrics = await waitFor('the counters', async () => {
      const { body } = await service.call('GET', `/v2/cdn_zones/${String(zone.id)}/metrics`);
      const total = (metric: string): number =>
        body.series
          .find((one: Body) => one.metric === metric)
          ?.points.reduce((sum: number, { value }: Body) => sum + value, 0) ?? 0;
      return total('requests') === 4 ? { hits: total('cache_hit_ratio'), origin: total('origin_requests') } : null;
    });
    expect(metrics).toEqual({ hits: 75, origin: 1 });
  });
});

describe('a private bucket as the origin', () => {
  it('is read in the name of the platform', async () => {
    const bucket = await service.call('POST', '/v2/buckets', { body: { name: 'behind-a-zone' } });
    expect([bucket.status, bucket.body.access]).toEqual([201, 'private']);
    const presigned = await service.call('POST', `/v2/buckets/${String(bucket.body.id)}/presign`, {
      body: { method: 'PUT', key: 'a folder/page.html' },
    });
    const put = await fetch(String(presigned.body.url), { method: 'PUT', body: '<p>Hello</p>' });
    expect(put.status).toBe(200);
    const zone = await activeZone({ origin: { type: 'bucket', bucket_id: bucket.body.id } });
    const first = await visit(zone.hostname, '/a%20folder/page.html?x=1', { Cookie: 'session=1' });
    expect([first.status, first.body]).toEqual([200, '<p>Hello</p>']);
    expect((await visit(zone.hostname, '/a%20folder/page.html?x=1')).headers['cache-status']).toBe('edge; hit');
    expect((await visit(zone.hostname, '/missing')).status).toBe(404);
    expect((await visit(zone.hostname, '/x', {}, 'DELETE')).status).toBe(405);
    expect((await visit(zone.hostname, '/x', {}, 'OPTIONS')).status).toBe(405);
  });
});
