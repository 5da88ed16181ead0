/** @user any */
// Operations: listCdnDomains, addCdnDomain, getCdnDomain, verifyCdnDomain, removeCdnDomain.
// Custom domains of CDN zones: one record, which proves and leads.
import { activeZone, dns, service, setUpCdn, visit } from '../support/cdn/cdn_cases';
import { waitFor } from '../support/wait_for';

setUpCdn();

describe('custom domains', () => {
  it('are served once their one record is found', async () => {
    const zone = await activeZone();
    const path = `/v2/cdn_zones/${String(zone.id)}/domains`;
    const added = await service.call('POST', path, { body: { hostname: 'static.example.com' } });
    expect([added.status, added.body]).toMatchObject([
      201,
      { status: 'pending', cdn_zone_id: zone.id, dns_instructions: [{ type: 'CNAME', value: zone.hostname }] },
    ]);
    expect(added.body.dns_instructions).toHaveLength(1);
    dns.set('static.example.com', 'CNAME', [String(zone.hostname)]);
    const verified = await service.call('POST', `${path}/${String(added.body.id)}/verify`);
    expect([verified.status, verified.body.status]).toEqual([200, 'active']);
    await waitFor('it is served', async () => (await visit('static.example.com', '/d?max-age=60')).status === 200);
    expect((await service.call('GET', path)).body.data).toMatchObject([{ id: added.body.id, status: 'active' }]);
    expect((await service.call('DELETE', `${path}/${String(added.body.id)}`)).status).toBe(204);
    await waitFor('it is gone', async () => (await visit('static.example.com', '/d')).status === 404);
  });

  it('are at most 20 of a zone', async () => {
    const path = `/v2/cdn_zones/${String((await activeZone()).id)}/domains`;
    const add = (index: number): ReturnType<typeof service.call> =>
      service.call('POST', path, { body: { hostname: `name${index}.many.example.com` } });
    for (let index = 1; index <= 20; index += 1) expect([index, (await add(index)).status]).toEqual([index, 201]);
    const refused = await add(21);
    expect([refused.status, refused.body]).toMatchObject([
      403,
      { code: 'quota_exceeded', resource: 'cdn_domains', used: 20, limit: 20 },
    ]);
    const [one] = (await service.call('GET', path)).body.data;
    expect((await service.call('DELETE', `${path}/${String(one.id)}`)).status).toBe(204);
    await waitFor('room', async () => (await add(21)).status === 201);
  });
});
