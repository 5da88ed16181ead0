// Every row of the table of states (docs/contract/resources.md §15.1), and what is kept of results: days, partitions.
import type { CheckOutcome } from '../../core/protocols/checks';
import { limits } from '../../core/limits';
import { rotateDays } from '../../models/observers/observation_day';
import { claimChecks } from '../../models/observers/observer/claim';
import { applyFindings } from '../../models/observers/observer/results';
import { observersOf, type Observers } from '../support/observers/observers';
import { startService, type TestService } from '../support/service';

const DAY_MS = 86_400_000;

let service: TestService;
let observers: Observers;
let application: string;
let notifier: string;

beforeAll(async () => {
  service = await startService({ settings: { ALLOW_PRIVATE_ADDRESSES: '1' } });
  observers = observersOf(service);
  application = (await service.call('POST', '/v2/applications', { body: { name: 'watched' } })).body.id;
  notifier = (await observers.notifier()).id;
});

afterAll(() => service.close());

type Found = 'pass' | 'fail' | 'silence';

function outcomeOf(found: Found): CheckOutcome | null {
  if (found === 'silence') return null;
  return {
    ...{ status: found, response_time_ms: null, status_code: null, value: 1, timings: null },
    ...{
      error: found === 'fail' ? 'Too much.' : null,
      certificate_expires_at: null,
      certificate_authority: null,
      unreachable: false,
    },
  };
}

/** What the loop finds, one after the other. Answers the statuses behind each. */
async function after(id: string, ...all: Found[]): Promise<string[]> {
  const seen: string[] = [];
  for (const found of all) {
    if (found === 'silence')
      await service.sql(`update observers set data_at = now() - interval '1 hour' where id = $1`, [id]);
    const finding = {
      observer_id: id,
      region: 'local',
      fence: null,
      checked_at: new Date(),
      outcome: outcomeOf(found),
    };
    await service.platform.database.transaction((session) => applyFindings(session, [finding]));
    seen.push((await observers.get(id)).status);
  }
  return seen;
}

const made = async (): Promise<string> => {
  const metric = { resource_type: 'application', resource_id: application, metric: 'cpu_percent' };
  const { status, body } = await observers.create({
    ...{ type: 'metric', uptime: undefined, failure_threshold: 2, recovery_threshold: 2, notifier_ids: [notifier] },
    metric: { ...metric, operator: 'gt', threshold: 90 },
  });
  expect([status, body.status]).toEqual([201, 'pending']);
  return body.id;
};
const messages = async (id: string): Promise<string[]> =>
  (
    await service.sql<{ event: string }>(
      `select event from notifications n join incidents i on i.id = n.incident_id
        where i.observer_id = $1 order by seq`,
      [id],
    )
  ).map(({ event }) => event);
const incidentsOf = async (id: string): Promise<string[]> =>
  (await observers.incidents(id)).map(({ status }: { status: string }) => status);

describe('an observer moves', () => {
  test('from pending to ok, to alerting, and to no_data', async () => {
    expect(await after(await made(), 'pass', 'pass')).toEqual(['pending', 'ok']);
    expect(await after(await made(), 'fail', 'fail')).toEqual(['pending', 'alerting']);
    expect(await after(await made(), 'silence')).toEqual(['no_data']);
  });

  test('from ok to alerting and to no_data', async () => {
    expect(await after(await made(), 'pass', 'pass', 'fail', 'fail')).toEqual(['pending', 'ok', 'ok', 'alerting']);
    expect(await after(await made(), 'pass', 'pass', 'silence')).toEqual(['pending', 'ok', 'no_data']);
  });

  test('from no_data to ok without a word, and to alerting with one', async () => {
    const id = await made();
    expect(await after(id, 'silence', 'pass', 'pass')).toEqual(['no_data', 'no_data', 'ok']);
    expect([await messages(id), await incidentsOf(id)]).toEqual([[], []]);
    expect(await after(id, 'silence', 'fail', 'fail')).toEqual(['no_data', 'no_data', 'alerting']);
    expect([await messages(id), await incidentsOf(id)]).toEqual([['observer.alerting'], ['open']]);
  });

  test('from alerting to no_data and back within one incident, which ends with ok', async () => {
    const id = await made();
    await after(id, 'fail', 'fail');
    expect(await after(id, 'silence', 'fail', 'silence', 'pass', 'pass')).toEqual([
      ...['no_data', 'alerting', 'no_data', 'no_data', 'ok'],
    ]);
    expect(await incidentsOf(id)).toEqual(['resolved']);
    expect(await messages(id)).toEqual(['observer.alerting', 'observer.resolved']);
    expect((await observers.get(id)).open_incident_id).toBeNull();
  });

  test.each<[string, Found[]]>([
    ['pending', []],
    ['ok', ['pass', 'pass']],
    ['alerting', ['fail', 'fail']],
    ['no_data', ['fail', 'fail', 'silence']],
  ])('from %s to paused, and by resuming to pending', async (status, found) => {
    const id = await made();
    await after(id, ...found);
    expect((await observers.get(id)).status).toBe(status);
    expect((await observers.patch(id, { enabled: false })).body).toMatchObject({
      ...{ status: 'paused', open_incident_id: null },
    });
    expect(await incidentsOf(id)).toEqual(found.includes('fail') ? ['resolved'] : []);
    // What was under way when it was paused counts no more.
    expect(await after(id, 'fail', 'silence')).toEqual(['paused', 'paused']);
    expect((await observers.patch(id, { enabled: true })).body.status).toBe('pending');
    // Nor does what was found before.
    expect(await after(id, 'fail')).toEqual(['pending']);
  });

  test('once for a result, also where its batch is written again because the answer was lost', async () => {
    const { id } = await observers.made('https://shop.example.com/', { failure_threshold: 2 });
    await service.sql(`update observer_checks set check_at = now() - interval '1 second' where observer_id = $1`, [id]);
    const claimed = await claimChecks(service.platform.database, 'local', 250);
    expect(claimed.map((one) => one.id)).toContain(id);
    const fence = claimed.find((one) => one.id === id)?.fence as number;
    const finding = { observer_id: id, region: 'local', fence, checked_at: new Date(), outcome: outcomeOf('fail') };
    for (let turn = 0; turn < 3; turn += 1)
      await service.platform.database.transaction((session) => applyFindings(session, [finding, finding]));
    const { body } = await service.call('GET', `/v2/observers/${id}/results`);
    expect([body.data.length, (await observers.get(id)).status]).toEqual([1, 'pending']);
  });
});

test('uptime_percent_30d is that of thirty roll-ups, rounded down, and asks no result', async () => {
  const { id } = await observers.made('https://shop.example.com/');
  await service.sql(
    `insert into observer_days (observer_id, day, checks, passes)
      select $1, (now() at time zone 'utc')::date - n, 1000, case when n > 29 then 0 when n = 7 then 999 else 1000 end
      from generate_series(0, 40) n`,
    [id],
  );
  // 29,999 of 30,000.
  expect((await observers.get(id)).uptime_percent_30d).toBe(99.996);
  expect((await service.call('GET', `/v2/observers/${id}/results`)).body.data).toEqual([]);
});

test('results are kept for 30 days, in partitions of a day that go as a whole', async () => {
  const { id } = await observers.made('https://shop.example.com/');
  const days = [0, 29, 30, limits.observationDaysMax + 2];
  for (const daysAgo of days) {
    const checked_at = new Date(Date.now() - daysAgo * DAY_MS);
    const finding = { observer_id: id, region: 'local', fence: null, checked_at, outcome: outcomeOf('pass') };
    await service.platform.database.transaction((session) => applyFindings(session, [finding]));
  }
  const partitions = async (): Promise<string[]> =>
    (
      await service.sql<{ name: string }>(
        `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'check_results'::regclass order by 1`,
      )
    ).map(({ name }) => name);
  const nameOf = (daysAgo: number): string =>
    `check_results_${new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`;
  expect(await partitions()).toEqual(expect.arrayContaining(days.map(nameOf)));
  expect((await rotateDays(service.platform.database)).dropped).toBeGreaterThan(0);
  const left = await partitions();
  expect(left).not.toContain(nameOf(limits.observationDaysMax + 2));
  // Those of today and of the days ahead are there before anybody writes.
  expect(left).toEqual(expect.arrayContaining([29, 0, -1, -2, -3].map(nameOf)));
  expect((await service.call('GET', `/v2/observers/${id}/results`)).body.data).toHaveLength(3);
});
