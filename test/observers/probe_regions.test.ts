// What several regions decide together, and what is told of a region that says nothing.
import { revokeProbe } from '../../models/observers/probe';
import { watchRegions } from '../../models/observers/observer/region_watch';
import { observersOf, type Observers } from '../support/observers/observers';
import { failed, passed, probesOf, type Probes } from '../support/observers/probes';
import { until } from '../support/email/receivers';
import { startService, type TestService } from '../support/service';
import { withConfig } from '../support/config';

let service: TestService;
let observers: Observers;
let probes: Probes;

beforeAll(async () => {
  service = await startService({
    settings: { ALLOW_PRIVATE_ADDRESSES: '1', ...withConfig({ operationWaitSeconds: 20 }) },
  });
  observers = observersOf(service);
  probes = probesOf(service);
  for (const name of ['north', 'south', 'south-two']) await probes.add(name);
});

afterAll(() => service.close());

const statusOf = async (id: string): Promise<string> => (await observers.get(id)).status;
const resultsOf = async (id: string): Promise<Record<string, unknown>[]> =>
  (await service.call('GET', `/v2/observers/${id}/results`)).body.data;

describe('several regions', () => {
  const eventsOf = async (action: string): Promise<unknown[]> =>
    (await service.call('GET', `/v2/projects/${service.project}/activity?action=${action}&limit=100`)).body.data;
  const metric = async (name: string): Promise<string | undefined> =>
    new RegExp(`^${name} (.+)$`, 'm').exec(await (await fetch(`${service.adminUrl}/metrics`)).text())?.[1];
  const watch = (): Promise<number> =>
    service.platform.database.transaction((session) =>
      watchRegions(session, { lostSeconds: 60, log: service.platform.log }),
    );

  test('alert when more than half of them fail, and recover when more than half pass', async () => {
    const id = await probes.made(['local', 'north', 'south']);
    await probes.found('north', id, failed());
    // The other two have yet to say something.
    expect(await statusOf(id)).toBe('pending');
    await probes.foundHere(id, passed());
    expect(await statusOf(id)).toBe('pending');
    await probes.found('south', id, passed());
    expect(await statusOf(id)).toBe('ok');
    await probes.found('south', id, failed());
    expect(await statusOf(id)).toBe('alerting');
    const { open_incident_id } = await observers.get(id);
    await probes.foundHere(id, failed());
    await probes.found('north', id, passed());
    expect(await statusOf(id)).toBe('alerting');
    await probes.found('south', id, passed());
    expect([await statusOf(id), await observers.incidents(id)]).toEqual([
      'ok',
      [expect.objectContaining({ id: open_incident_id, status: 'resolved' })],
    ]);
    const regions = new Set((await resultsOf(id)).map(({ region }) => region));
    expect([...regions].sort()).toEqual(['local', 'north', 'south']);
    const { body } = await service.call('GET', `/v2/observers/${id}/results?region=north`);
    expect(body.data).toHaveLength(2);
  });

  test('one whose probes are silent has no verdict: no outage, and the others decide', async () => {
    const id = await probes.made(['local', 'north']);
    await probes.found('north', id, passed());
    await probes.foundHere(id, passed());
    await service.sql(`update probes set seen_at = now() - interval '2 minutes', created_at = now() - interval '1 day'
      where region = 'north'`);
    expect(await watch()).toBeGreaterThanOrEqual(1);
    expect(await watch()).toBe(0);
    expect(await statusOf(id)).toBe('ok');
    expect(await metric('platform_check_regions_lost')).toBe('1');
    expect((await eventsOf('region.probe_lost'))[0]).toMatchObject({
      ...{ actor: { type: 'system' }, resource: { type: 'region', id: 'north' } },
    });
    // Its last word was a pass, and does not hold up the only region that is left.
    await probes.foundHere(id, failed());
    expect(await statusOf(id)).toBe('alerting');
    await probes.foundHere(id, passed());
    expect(await statusOf(id)).toBe('ok');

    // Back again, it is waited for like a new one.
    await probes.ask('north', { limit: 0 });
    expect(await metric('platform_check_regions_lost')).toBe('0');
    expect(await eventsOf('region.probe_returned')).toHaveLength(1);
    await probes.found('north', id, failed());
    expect(await statusOf(id)).toBe('ok');
    await probes.foundHere(id, failed());
    expect(await statusOf(id)).toBe('alerting');
  });

  test('a region whose only key is revoked is lost too, and observers that have it can still be changed', async () => {
    const probe = await probes.add('gone');
    const id = await probes.made(['local', 'gone']);
    await revokeProbe(service.platform.database, probe);
    await watch();
    const lost = await eventsOf('region.probe_lost');
    expect(lost[0]).toMatchObject({ resource: { id: 'gone' } });
    expect((await observers.patch(id, { uptime: { timeout_seconds: 5 } })).status).toBe(200);
    const added = await observers.patch(id, { uptime: { regions: ['local', 'gone', 'never'] } });
    expect([added.status, added.body.code]).toEqual([422, 'reference_not_found']);
    await observers.patch(id, { uptime: { regions: ['local'] } });
  });

  test('checks that wait are told of, and so is that they do not any longer', async () => {
    const id = await probes.made(['local']);
    await service.sql(`update observer_checks set check_at = now() + interval '1 hour'`);
    await service.sql(`update observer_checks set check_at = now() - interval '40 s' where observer_id = $1`, [id]);
    await watch();
    expect((await eventsOf('region.checks_late'))[0]).toMatchObject({ resource: { type: 'region', id: 'local' } });
    expect(Number(await metric('platform_check_lag_seconds'))).toBeGreaterThan(39);
    await service.sql(`update observer_checks set check_at = now() + interval '1 hour'`);
    await watch();
    expect((await eventsOf('region.checks_on_time'))[0]).toMatchObject({ resource: { id: 'local' } });
  });

  test('a check that is asked for is made where the observer is checked', async () => {
    const id = await probes.made(['south']);
    const asked = observers.check(id);
    await until(async () => {
      const { body } = await probes.ask('south');
      const due = body.checks.find((one) => one.id.startsWith(id));
      return due && probes.send('south', [{ id: due.id, age_ms: 5, outcome: failed() }]);
    });
    const { status, body } = await asked;
    expect([status, body.region, body.status]).toEqual([200, 'south', 'fail']);
    expect(await resultsOf(id)).toEqual([body]);
    expect(body.incident_id).toBe((await observers.get(id)).open_incident_id);
  });

  test('a region is suspended when the networks of all its probes seem to be down', async () => {
    await probes.made(['south']);
    await probes.ask('south-two', { limit: 0 });
    await probes.ask('south', { limit: 0, suspended: true });
    expect(await metric('platform_check_regions_suspended')).toBe('0');
    await probes.ask('south-two', { limit: 0, suspended: true });
    expect(await metric('platform_check_regions_suspended')).toBe('1');
    expect((await eventsOf('region.checks_suspended'))[0]).toMatchObject({ resource: { id: 'south' } });
    await probes.ask('south', { limit: 0 });
    expect(await metric('platform_check_regions_suspended')).toBe('0');
  });
});
