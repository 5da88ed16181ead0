// A deleted CDN zone: it answers nobody, also on connections that are open; its host names may be used elsewhere.
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { binCalls } from '../support/bin_calls';
import { activeZone, dns, ingressPort, service, setUpCdn, visit } from '../support/cdn/cdn_cases';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
setUpCdn({ RETENTION_OF_DELETED_DAYS: '7' });
const bin = binCalls(() => service);
const place = ({ id }: any): string => `/v2/cdn_zones/${id}`;

/** On one connection that is kept. */
function ask(agent: Agent, host: string, target: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    get({ agent, port: ingressPort(), host: '127.0.0.1', path: target, headers: { Host: host } }, async (answer) =>
      resolve({ status: answer.statusCode ?? 0, body: await text(answer) }),
    ).on('error', reject);
  });
}

async function domainOf(zone: any, hostname: string): Promise<any> {
  const path = `${place(zone)}/domains`;
  const { body } = await service.call('POST', path, { body: { hostname } });
  dns.set(hostname, 'CNAME', [String(zone.hostname)]);
  expect((await service.call('POST', `${path}/${body.id}/verify`)).body.status).toBe('active');
  await waitFor('it is served', async () => (await visit(hostname, '/d?max-age=60')).status === 200);
  return body;
}

describe('a deleted CDN zone', () => {
  it('answers nobody, and is the same after it was restored, with its domains', async () => {
    const zone = await activeZone({ cache: { default_ttl_seconds: 77 }, force_https: false });
    const domain = await domainOf(zone, 'kept.example.com');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await ask(agent, zone.hostname, '/page?max-age=600');
    expect(first.status).toBe(200);
    const before = (await service.call('GET', place(zone))).body;
    const entry = await bin.deleted(place(zone));
    await waitFor(
      'it answers nobody',
      async () => (await ask(agent, zone.hostname, '/page?max-age=600')).status === 404,
    );
    await waitFor('nor by its domain', async () => (await visit('kept.example.com', '/d?max-age=60')).status === 404);
    expect((await service.call('GET', place(zone))).status).toBe(404);
    expect(await bin.restored(entry)).toEqual([expect.stringContaining('`kept.example.com` is checked again')]);
    const after = await service.settle(place(zone));
    expect({ ...after, updated_at: null }).toEqual({ ...before, updated_at: null });
    const again = await ask(agent, zone.hostname, '/page?max-age=600');
    expect(again.status).toBe(200);
    await waitFor(
      'the domain is served',
      async () => (await visit('kept.example.com', '/d?max-age=60')).status === 200,
    );
    const [there] = (await service.call('GET', `${place(zone)}/domains`)).body.data;
    expect([there.id, there.created_at]).toEqual([domain.id, domain.created_at]);
    agent.destroy();
    await bin.purge(await bin.deleted(place(zone)));
  });

  it('comes back without a domain that is used elsewhere, and not while its name is taken', async () => {
    const zone = await activeZone();
    await domainOf(zone, 'moved.example.com');
    const entry = await bin.deleted(place(zone));
    const other = await activeZone({ name: zone.name });
    await waitFor(
      'the host name is free',
      async () => !(await service.sql(`select 1 from domains where hostname = 'moved.example.com'`)).length,
    );
    await domainOf(other, 'moved.example.com');
    const taken = await bin.restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'name_taken', 'name']);
    expect(await bin.restored(entry, { name: 'renamed' })).toEqual([
      expect.stringContaining('`moved.example.com` was not restored'),
    ]);
    expect(await service.settle(place(zone))).toMatchObject({
      name: 'renamed',
      hostname: zone.hostname,
      status: 'active',
    });
    expect((await service.call('GET', `${place(zone)}/domains`)).body.data).toEqual([]);
    expect((await visit('moved.example.com', '/d?max-age=60')).status).toBe(200);
    for (const one of [zone, other]) await bin.purge(await bin.deleted(place(one)));
  });

  it('leaves no row after it was purged, and is restored or purged once', async () => {
    const zone = await activeZone();
    const first = await bin.deleted(place(zone));
    expect(await bin.race(bin.restore(first), bin.restore(first), bin.purge(first))).toEqual(
      expect.arrayContaining([404, 404]),
    );
    if ((await service.call('GET', place(zone))).status === 200) await bin.expire(await bin.deleted(place(zone)));
    await waitFor(
      'its row goes',
      async () => !(await service.sql('select 1 from cdn_zones where id = $1', [zone.id])).length,
    );
    expect((await visit(zone.hostname, '/page')).status).toBe(404);
  });
});
