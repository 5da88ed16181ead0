// Operations: listCdnPurges, createCdnPurge, getCdnPurge.
// Purges: what is gone, and what stays.
import { activeZone, purge, service, setUpCdn, visit } from './support/cdn_cases';

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
