/** @user any */
// Operations: listCdnPurges, createCdnPurge, getCdnPurge.
// Purges: what is gone, and what stays.
import { activeZone, purge, service, setUpCdn, visit } from '../support/cdn/cdn_cases';

setUpCdn();

describe('a purge', () => {
  it('takes out what is purged, by path, prefix, tag and all', async () => {
    const zone = await activeZone();
    const targets = ['/a/1?max-age=60&tag=red', '/a/2?max-age=60&tag=blue', '/b/1?max-age=60&tag=red'];
    const seen = async (): Promise<boolean[]> => {
      const found = [];
      for (const target of targets)
        found.push((await visit(zone.hostname, target)).headers['cache-status'] === 'edge; hit');
      return found;
    };
    await seen();
    expect(await seen()).toEqual([true, true, true]);
    await purge(zone, { type: 'urls', values: ['/a/1'] });
    expect(await seen()).toEqual([false, true, true]);
    await purge(zone, { type: 'prefixes', values: ['/a/'] });
    expect(await seen()).toEqual([false, false, true]);
    await purge(zone, { type: 'tags', values: ['red'] });
    expect(await seen()).toEqual([false, true, false]);
    await purge(zone, { type: 'all' });
    expect(await seen()).toEqual([false, false, false]);
    const wrong = await service.call('POST', `/v2/cdn_zones/${String(zone.id)}/purges`, {
      body: { type: 'urls', values: ['x'] },
    });
    expect([wrong.status, wrong.body.errors]).toMatchObject([422, [{ field: 'values.0' }]]);
  });

  it('is a log, and needs values for all types but one', async () => {
    const zone = await activeZone();
    const path = `/v2/cdn_zones/${String(zone.id)}/purges`;
    const done = await purge(zone, { type: 'all' });
    expect(done).toMatchObject({
      type: 'all',
      values: null,
      created_by: { name: expect.any(String) },
      completed_at: expect.any(String),
    });
    expect((await service.call('GET', `${path}?type=all&status=completed`)).body.data).toEqual([done]);
    for (const [body, code] of [
      [{ type: 'urls' }, 'required'],
      [{ type: 'all', values: ['/'] }, 'depends_on'],
    ] as const) {
      const answer = await service.call('POST', path, { body });
      expect([answer.status, answer.body.errors]).toMatchObject([422, [{ field: 'values', code }]]);
    }
  });

  it('by address without its query string, where that is no part of the address', async () => {
    const zone = await activeZone({ cache: { query_string: 'ignore', default_ttl_seconds: 600 } });
    for (const body of [
      { type: 'urls', values: ['/whole?version=2'] },
      { type: 'prefixes', values: ['/whole?version='] },
    ]) {
      for (let turn = 0; turn < 2; turn += 1) await visit(zone.hostname, '/whole?version=1');
      expect((await visit(zone.hostname, '/whole')).headers['cache-status']).toBe('edge; hit');
      await purge(zone, body);
      expect((await visit(zone.hostname, '/whole')).headers['cache-status']).toBe('edge; fwd=uri-miss; stored');
    }
  });

  it('of what no object can have is refused', async () => {
    const zone = await activeZone();
    const path = `/v2/cdn_zones/${String(zone.id)}/purges`;
    const refused: [string, string][] = [
      ...['/a b', '/ä', '/a#b', '/a\\b', 'https://example.com/a', '', 'a'].map((value): [string, string] => [
        'urls',
        value,
      ]),
      ...['/a b', '/ä', '//a#', `/a${'?'.repeat(1000)}\u00e4`].map((value): [string, string] => ['prefixes', value]),
      ...['a,b', 'a b', 'ä', '', 'x'.repeat(257)].map((value): [string, string] => ['tags', value]),
    ];
    for (const [type, value] of refused) {
      const { status, body } = await service.call('POST', path, { body: { type, values: [value] } });
      expect([value, status, body.errors]).toMatchObject([value, 422, [{ field: 'values.0' }]]);
    }
  });

  it('is refused while the zone is switched off', async () => {
    const zone = await activeZone({ name: 'off' });
    await service.call('PATCH', `/v2/cdn_zones/${String(zone.id)}`, {
      body: { enabled: false },
      headers: { Prefer: 'wait=20' },
    });
    const answer = await service.call('POST', `/v2/cdn_zones/${String(zone.id)}/purges`, { body: { type: 'all' } });
    expect([answer.status, answer.body.code]).toEqual([409, 'invalid_state']);
  });
});
