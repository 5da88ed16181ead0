// Alarms of the installation as rows: each is told once when it begins and once when it ends, whatever happens between.
import { randomUUID } from 'node:crypto';
import {
  backgroundReadings,
  backupReadings,
  memoryReadings,
  queueReadings,
  releaseReadings,
} from '../../jobs/observers/alarms/rows';
import { clockOffset, clockReadings, type ClockAnswer } from '../../jobs/observers/alarms/clock';
import { applyReadings, holdEvaluation, releaseEvaluation } from '../../models/observers/installation_alarm';
import type { AlarmName, Reading } from '../../models/observers/installation_alarm/alarm_rules';
import { alarms as doctorAlarms } from '../../server/operator/doctor_alarms';
import { newBrowser, type Browser } from '../support/identity/browser';
import { observersOf } from '../support/observers/observers';
import { startService, type TestService } from '../support/service';

let service: TestService;
let operator: Browser & { user: { id: string } };
let notifier: string;
const holder = randomUUID();

beforeAll(async () => {
  service = await startService({ settings: { ALLOW_PRIVATE_ADDRESSES: '1' } });
  operator = await newBrowser(service, 'operator@example.com');
  await service.sql('update users set is_operator = true where email = $1', ['operator@example.com']);
  await service.sql(
    `insert into members (project_id, user_id, role, created_at) values ($1, $2, 'developer', now())
      on conflict do nothing`,
    [service.project, operator.user.id],
  );
  notifier = (await observersOf(service).notifier()).id;
});
afterAll(() => service.close());
beforeEach(async () => {
  for (const table of ['installation_alarms', 'notifications', 'alarm_notifiers', 'email_outbox'])
    await service.sql(`delete from ${table}`);
  await service.sql('update alarm_evaluations set holder = null, held_until = now()');
  await operator.data(CHOOSE, { ids: [notifier] });
  expect(await holdEvaluation(service.platform.database, holder)).toBe(true);
});

const CHOOSE = `mutation ($ids: [ID!]!) { chooseAlarmNotifiers(ids: $ids) { notifiers { id } default_receivers } }`;
const apply = (names: AlarmName[], readings: Reading[], by = holder): Promise<boolean> =>
  applyReadings(service.platform.database, by, { names, readings }, service.platform);
const disk = (value: number): Reading => ({
  ...{ name: 'disk', subject: '/data', value, title: `The disk is ${value} % full`, detail: 'Free room.' },
});
const engine: Reading = { name: 'engine', subject: 'ingress', title: 'The ingress does not answer', detail: 'Look.' };

/** Event and title of each message, in order. */
const messages = async (): Promise<string[]> =>
  (
    await service.sql(`select event || ': ' || (data -> 'alarm' ->> 'title') as text from notifications order by seq`)
  ).map(({ text }) => text.replace('installation.alarm_', ''));
const ago = (column: string, seconds: number): Promise<unknown> =>
  service.sql(`update installation_alarms set ${column} = ${column} - make_interval(secs => $1)`, [seconds]);

test('a disk that hovers around a level is told once of each level, and once that it has room again', async () => {
  for (const value of [79, 80.1, 79.9, 80.1, 78.5, 91, 89.9, 90.2, 80.5, 96, 94, 95.5, 77.9, 80, 79])
    expect(await apply(['disk'], [disk(value)])).toBe(true);
  expect(await messages()).toEqual([
    'started: The disk is 80.1 % full',
    'started: The disk is 91 % full',
    'started: The disk is 96 % full',
    'ended: The disk is 95.5 % full',
    'started: The disk is 80 % full',
  ]);
});

test('a server is told of after a minute, and has ended when it has answered for two', async () => {
  await apply(['engine'], [engine]);
  await apply(['engine'], []);
  await apply(['engine'], [engine]);
  await ago('begun_at', 50);
  await apply(['engine'], [engine]);
  expect(await messages()).toEqual([]);
  await ago('begun_at', 11);
  await apply(['engine'], [engine]);
  await apply(['engine'], []);
  // Down again: the same alarm.
  await apply(['engine'], [engine]);
  await apply(['engine'], []);
  await ago('clear_since', 100);
  await apply(['engine'], []);
  expect(await messages()).toEqual(['started: The ingress does not answer']);
  await ago('clear_since', 21);
  await apply(['engine'], []);
  await apply(['engine'], []);
  expect(await messages()).toEqual(['started: The ingress does not answer', 'ended: The ingress does not answer']);
});

test('one that is away every other time is told of, one that was away for a moment twice is not', async () => {
  for (const [moved, found] of [
    [0, [engine]],
    [30, []],
    [29, [engine]],
    [5, []],
  ] as const) {
    await ago('begun_at', moved);
    await apply(['engine'], [...found]);
  }
  expect(await messages()).toEqual([]);
  await ago('begun_at', 10);
  await apply(['engine'], [engine]);
  expect(await messages()).toHaveLength(1);
  await service.sql('delete from installation_alarms');
  await apply(['engine'], [engine]);
  await apply(['engine'], []);
  await ago('begun_at', 61);
  await ago('clear_since', 31);
  await apply(['engine'], []);
  await apply(['engine'], [engine]);
  expect(await messages()).toHaveLength(1);
});

test('what could not be looked at is not over', async () => {
  await apply(['disk'], [disk(85)]);
  await apply(['engine'], []);
  expect(await messages()).toHaveLength(1);
});

test('of several processes one evaluates, and another after its death tells nothing twice', async () => {
  const other = randomUUID();
  await apply(['disk'], [disk(85)]);
  expect(await holdEvaluation(service.platform.database, other)).toBe(false);
  expect(await apply(['disk'], [], other)).toBe(false);
  await service.sql(`update alarm_evaluations set held_until = now() - interval '1 s'`);
  expect(await holdEvaluation(service.platform.database, other)).toBe(true);
  // The first one wakes up again in the middle of its evaluation.
  expect(await apply(['disk'], [], holder)).toBe(false);
  expect(await apply(['disk'], [disk(86)], other)).toBe(true);
  expect(await messages()).toEqual(['started: The disk is 85 % full']);
  await releaseEvaluation(service.platform.database, other);
  expect(await holdEvaluation(service.platform.database, holder)).toBe(true);
});

test('two evaluations at once tell once', async () => {
  await Promise.all(Array.from({ length: 5 }, () => apply(['disk'], [disk(85)])));
  expect(await messages()).toHaveLength(1);
});

test('without a chosen notifier operators get e-mail, of certificates from where they are renewed', async () => {
  const { chooseAlarmNotifiers: chosen } = await operator.data(CHOOSE, { ids: [] });
  expect(chosen).toEqual({ notifiers: [], default_receivers: ['operator@example.com'] });
  await apply(['disk', 'certificate'], [disk(85), { ...engine, name: 'certificate' }]);
  const mails = await service.sql('select recipients from email_outbox');
  expect(mails).toEqual([{ recipients: ['operator@example.com'] }]);
});

test('a notifier in the bin, one that is switched off and one of a deleted project are not told', async () => {
  await service.call('PATCH', `/v2/notifiers/${notifier}`, { body: { enabled: false } });
  await apply(['disk'], [disk(85)]);
  expect(await messages()).toEqual([]);
  await service.call('PATCH', `/v2/notifiers/${notifier}`, { body: { enabled: true } });
});

test('an operator chooses among notifiers of their own projects; a stranger’s cannot be chosen', async () => {
  const { id, key } = await service.newProject({ stranger: true });
  const { body } = await service.call('POST', '/v2/notifiers', {
    ...{ key, project: id },
    body: { name: 'Foreign', type: 'webhook', config: { url: 'https://ops.example.com/hook' } },
  });
  expect((await operator.refused(CHOOSE, { ids: [body.id] })).code).toBe('validation_failed');
  expect((await operator.refused(CHOOSE, { ids: ['ntf_00000000000000000000000000'] })).code).toBe('validation_failed');
  await apply(['disk'], [disk(92)]);
  const { installationAlarms: shown } = await operator.data(`{ installationAlarms { evaluated_at
    current { name subject level title detail ended_at } past { id } candidates { id }
    notifiers { name project_id } } }`);
  expect(shown).toEqual({
    evaluated_at: expect.any(String),
    current: [
      {
        name: 'disk',
        subject: '/data',
        level: 90,
        title: 'The disk is 92 % full',
        detail: 'Free room.',
        ended_at: null,
      },
    ],
    ...{ past: [], candidates: [{ id: notifier }], notifiers: [{ name: 'On call', project_id: service.project }] },
  });
});

test('/metrics and doctor show what lasts', async () => {
  const metrics = async (): Promise<string> => (await fetch(`${service.adminUrl}/metrics`)).text();
  await apply(['disk'], [disk(92)]);
  expect(await metrics()).toMatch(/platform_alarm\{name="disk",subject="\/data"\} 90/);
  expect(await metrics()).toMatch(/platform_alarm\{name="engine",subject=""\} 0/);
  expect(await metrics()).toMatch(/platform_alarms_evaluated_timestamp_seconds 1\d{9}/);
  expect(await doctorAlarms(service.platform.config)).toEqual([
    {
      check: 'alarms',
      status: 'warning',
      detail: expect.stringMatching(/^The disk is 92 % full, since .* Free room\.$/),
    },
  ]);
  await apply(['disk'], []);
  expect(await metrics()).toMatch(/platform_alarm\{name="disk",subject=""\} 0/);
  expect(await doctorAlarms(service.platform.config)).toMatchObject([{ status: 'ok' }]);
});

test('from 95 % on no volume is made, until there is room or nobody evaluates any more', async () => {
  const create = async (): Promise<[number, string]> => {
    const body = { name: `data-${randomUUID().slice(0, 8)}`, size_gb: 1 };
    const answer = await service.call('POST', '/v2/volumes', { body });
    return [answer.status, answer.body.detail];
  };
  await apply(['disk'], [disk(96)]);
  expect(await create()).toEqual([
    expect.any(Number),
    'The disk is 96 % full. Nothing can be made until the operator has freed room.',
  ]);
  await service.sql(`update alarm_evaluations set evaluated_at = now() - interval '11 min'`);
  expect((await create())[0]).toBe(201);
  await apply(['disk'], [disk(92)]);
  expect((await create())[0]).toBe(201);
});

describe('what is an alarm', () => {
  const HOUR = 3_600_000;
  const now = Date.parse('2026-11-29T12:00:00Z');
  const at = (hours: number): string => new Date(now - hours * HOUR).toISOString();
  const journal = (whole: number | null, proof: { at: string; error: string | null } | null) => ({
    ...{ started_at: at(1), last_whole_at: whole === null ? null : at(whole), error: null, proof },
  });
  const names = (readings: Reading[]): string[] => readings.map(({ name }) => name);

  test.each([
    ['a fresh one that is proven', journal(3, { at: at(3), error: null }), []],
    ['one of 27 hours ago', journal(27, { at: at(27), error: null }), ['backup']],
    ['a proof of 27 hours ago, of a fresh one', journal(2, { at: at(27), error: null }), ['backup_proof']],
    ['one that is not usable', journal(2, { at: at(2), error: 'A table is missing' }), ['backup_proof']],
    ['none at all, a day later', null, ['backup']],
  ])('of backups: %s', (_, found, expected) => {
    expect(names(backupReadings(found, 24, now - 27 * HOUR, now))).toEqual(expected);
  });

  test('none at all on the first day is no alarm', () => {
    expect(backupReadings(null, 24, now - HOUR, now)).toEqual([]);
  });

  test('of the clock: all servers that answer must say so, beyond what the way may explain', () => {
    const answer = (offsetMs: number, wayMs = 50): ClockAnswer => ({
      server: 'time.example.com',
      ...{ sentAt: now, receivedAt: now + wayMs, from: now - offsetMs, to: now - offsetMs + 1000 },
    });
    expect(clockReadings([])).toEqual([]);
    expect(clockReadings([answer(900)])).toEqual([]);
    expect(clockReadings([answer(2900)])).toEqual([]);
    expect(clockReadings([answer(3500)])[0]?.title).toBe('The clock of the machine is ahead by at least 2 s');
    expect(clockReadings([answer(-3500)])[0]?.title).toBe('The clock of the machine is behind by at least 3 s');
    expect(clockReadings([answer(9000), answer(100)])).toEqual([]);
    expect(clockReadings([answer(9000), answer(-9000)])).toEqual([]);
    // A slow way could explain it.
    expect(clockOffset(answer(-3500, 4000))).toBe(0);
  });

  test('of queues, memory, releases and background work', () => {
    expect(queueReadings([{ name: 'work', lagSeconds: 299 }])).toEqual([]);
    expect(names(queueReadings([{ name: 'work', lagSeconds: 301 }]))).toEqual(['queue']);
    expect(memoryReadings(1024, 2 ** 30)).toEqual([]);
    expect(names(memoryReadings(1025, 2 ** 30))).toEqual(['memory']);
    const release = { version: '2.0.0', security: 'A hole is closed.' };
    expect(names(releaseReadings(release, '1.0.0'))).toEqual(['release']);
    expect(releaseReadings(release, '2.0.0')).toEqual([]);
    expect(releaseReadings({ ...release, security: null }, '1.0.0')).toEqual([]);
    const ALL = { except: [], long: [] };
    const work = { name: 'sampler', everyMs: 1000, runs: 1, failures: 0, lastSuccessAt: now, lastError: null };
    expect(backgroundReadings([{ ...work, lastRunAt: now }], ALL, now)).toEqual([]);
    expect(names(backgroundReadings([{ ...work, lastRunAt: now, lastError: 'No room' }], ALL, now))).toEqual([
      'background',
    ]);
    expect(names(backgroundReadings([{ ...work, lastRunAt: now - HOUR }], ALL, now))).toEqual(['background']);
    expect(backgroundReadings([{ ...work, lastRunAt: now - HOUR }], { ...ALL, except: ['sampler'] }, now)).toEqual([]);
    // A backup to a slow repository takes hours.
    const long = { ...ALL, long: ['sampler'] };
    expect(backgroundReadings([{ ...work, lastRunAt: now - HOUR }], long, now)).toEqual([]);
    expect(names(backgroundReadings([{ ...work, lastRunAt: now - HOUR, lastError: 'No room' }], long, now))).toEqual([
      'background',
    ]);
  });
});
