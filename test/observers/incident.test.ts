// Incidents: thresholds, one at a time, resolved by recovery or by pausing, with one message for each notifier.
import { startTarget, type Target } from '../support/deployments/breakable_target';
import { observersOf, type Observers } from '../support/observers/observers';
import { startService, type TestService } from '../support/service';

let service: TestService;
let observers: Observers;
let target: Target;

beforeAll(async () => {
  service = await startService({ settings: { ALLOW_PRIVATE_ADDRESSES: '1' } });
  observers = observersOf(service);
  target = await startTarget();
});

afterAll(async () => {
  await service.close();
  await target.close();
});

/** Checks with the target in each of these states, and answers the statuses of the observer behind them. */
async function after(id: string, ...statuses: number[]): Promise<string[]> {
  const seen: string[] = [];
  for (const status of statuses) {
    target.status = status;
    await observers.check(id);
    seen.push((await observers.get(id)).status);
  }
  return seen;
}

const made = (changes: Record<string, unknown> = {}): Promise<{ id: string }> =>
  observers.made(`http://127.0.0.1:${target.port}/switch`, changes);
const messages = (id: string): Promise<{ event: string }[]> =>
  service.sql('select event, status from notifications where incident_id = $1 order by seq', [id]);

test('failures in a row open one incident, passes in a row resolve it, and a flap does neither', async () => {
  const { id: notifier } = await observers.notifier();
  const { id: off } = await observers.notifier({ enabled: false });
  const { id } = await made({ failure_threshold: 3, recovery_threshold: 2, notifier_ids: [notifier, off] });
  expect(await after(id, 200, 500, 500, 200, 500, 500)).toEqual([
    'pending',
    'pending',
    'pending',
    'pending',
    'pending',
    'pending',
  ]);
  expect(await after(id, 503, 500, 200, 500)).toEqual(['alerting', 'alerting', 'alerting', 'alerting']);
  const { open_incident_id, last_result } = await observers.get(id);
  expect(last_result.incident_id).toBe(open_incident_id);
  const { body } = await service.call('GET', `/v2/observers/${id}/incidents?status=open`);
  const [open] = body.data;
  expect(open).toEqual({
    ...{ id: open_incident_id, observer_id: id, status: 'open', cause: 'The answer had the status 503.' },
    ...{ started_at: expect.any(String), resolved_at: null, duration_seconds: null },
    notifications: [{ notifier_id: notifier, sent_at: null, status: 'pending' }],
  });
  expect(await after(id, 200, 200, 200)).toEqual(['alerting', 'ok', 'ok']);
  const [resolved, ...others] = await observers.incidents(id);
  expect(resolved).toMatchObject({ id: open_incident_id, status: 'resolved', duration_seconds: expect.any(Number) });
  expect(others).toEqual([]);
  expect((await observers.get(id)).open_incident_id).toBeNull();
  expect((await messages(open_incident_id)).map(({ event }) => event)).toEqual([
    'observer.alerting',
    'observer.resolved',
  ]);
});

test('checks at the same time open one incident, and tell of it once', async () => {
  const { id: notifier } = await observers.notifier();
  const { id } = await made({ failure_threshold: 1, notifier_ids: [notifier] });
  target.status = 500;
  await Promise.all(Array.from({ length: 8 }, () => observers.check(id)));
  const incidents = await observers.incidents(id);
  expect(incidents).toHaveLength(1);
  expect(await messages(incidents[0].id)).toHaveLength(1);
});

test('pausing resolves an open incident, and so does deleting', async () => {
  const { id: notifier } = await observers.notifier();
  for (const end of ['pause', 'delete']) {
    const { id } = await made({ failure_threshold: 1, notifier_ids: [notifier] });
    expect(await after(id, 500)).toEqual(['alerting']);
    const [incident] = await observers.incidents(id);
    if (end === 'pause')
      expect((await observers.patch(id, { enabled: false })).body).toMatchObject({
        status: 'paused',
        open_incident_id: null,
      });
    else expect((await service.call('DELETE', `/v2/observers/${id}`)).status).toBe(204);
    expect((await messages(incident.id)).map(({ event }) => event)).toEqual(['observer.alerting', 'observer.resolved']);
    expect(await service.sql('select 1 from check_results where observer_id = $1', [id])).toHaveLength(
      end === 'pause' ? 1 : 0,
    );
  }
});

test('another target does not inherit the failures of the last one', async () => {
  const { id } = await made({ failure_threshold: 2 });
  await after(id, 500);
  await observers.patch(id, { uptime: { target: `http://127.0.0.1:${target.port}/switch?other` } });
  expect(await after(id, 500, 500)).toEqual(['pending', 'alerting']);
});

test('moves are told in the activity of the project', async () => {
  const { id } = await made({ failure_threshold: 1 });
  await after(id, 500, 200);
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}&limit=50`);
  const actions = body.data.map(({ action }: { action: string }) => action);
  expect(actions).toEqual(expect.arrayContaining(['observer.ok', 'observer.alerting', 'observer.created']));
});
