// Alarms of the installation as rows: each is told once when it begins and once when it ends, also across restarts.
import type { Config } from '../../core/config';
import type { Sql } from '../../core/context';
import { mintId } from '../../core/ids';
import type { AlarmEvent } from '../../core/notifications';
import type { SecretBox } from '../../core/secrets';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import { queueMail } from '../base/mail_outbox';
import {
  alarmRules,
  FULL_LEVEL,
  alarmLevelOf,
  type AlarmName,
  type AlarmRule,
  type Reading,
} from './installation_alarm/alarm_rules';
import { queueAlarmMessage } from './notification/outbox';

export interface AlarmRow {
  id: string;
  name: AlarmName;
  subject: string;
  level: number;
  announced_level: number | null;
  title: string;
  detail: string;
  begun_at: string;
  announced_at: string | null;
  ended_at: string | null;
}

interface OpenAlarm extends AlarmRow {
  lasts_seconds: number;
  clear_seconds: number | null;
}

/** Who evaluates. Longer than an evaluation may take. */
const HELD_SECONDS = 60;
const HOLD = named(`update alarm_evaluations set holder = $1, held_until = now() + interval '${HELD_SECONDS} s'
  where holder = $1 or held_until <= now() returning id`);
const STILL_HELD = named('select 1 from alarm_evaluations where holder = $1 and held_until > now() for no key update');
const EVALUATED = named('update alarm_evaluations set evaluated_at = now()');
const RELEASE = named('update alarm_evaluations set held_until = now() where holder = $1');

/** Whether this process is to evaluate: one does, and another takes over a minute after it has died. */
export async function holdEvaluation(sql: Pick<Sql, 'query'>, holder: string): Promise<boolean> {
  return (await sql.query(HOLD, [holder])).length > 0;
}

export async function releaseEvaluation(sql: Pick<Sql, 'query'>, holder: string): Promise<void> {
  await sql.query(RELEASE, [holder]);
}

const OPEN = named(`select *, extract(epoch from now() - begun_at)::float8 as lasts_seconds,
    extract(epoch from now() - clear_since)::float8 as clear_seconds
  from installation_alarms where ended_at is null and name = any($1) order by id for update`);
const BEGIN = named(`insert into installation_alarms (id, name, subject, level, title, detail)
  values ($1, $2, $3, $4, $5, $6) returning *, 0::float8 as lasts_seconds, null::float8 as clear_seconds`);
const LAST = named(
  `update installation_alarms set level = $2, title = $3, detail = $4, clear_since = null where id = $1`,
);
const CLEAR = named(`update installation_alarms set clear_since = coalesce(clear_since, now()) where id = $1`);
const FORGOTTEN_SECONDS = 30;
const FORGET = named('delete from installation_alarms where id = $1');
const ANNOUNCE = named(`update installation_alarms set announced_level = level,
    announced_at = coalesce(announced_at, now()) where id = $1 returning *`);
const END = named('update installation_alarms set ended_at = now() where id = $1 returning *');

export interface AlarmParts {
  config: Config;
  secrets: SecretBox;
}

/**
 * Compares what was found with the alarms that are open, and tells of those that begin, rise and end.
 * @param names what was looked at: alarms of other names stay as they are
 * @returns false where another process evaluates by now
 */
export function applyReadings(
  database: Session,
  holder: string,
  { names, readings }: { names: readonly AlarmName[]; readings: readonly Reading[] },
  parts: AlarmParts,
): Promise<boolean> {
  return database.transaction(async (sql) => {
    if (!(await sql.query(STILL_HELD, [holder])).length) return false;
    const open = await sql.query<OpenAlarm>(OPEN, [names]);
    const isOf = (alarm: OpenAlarm, { name, subject }: Reading): boolean =>
      alarm.name === name && alarm.subject === subject;
    for (const reading of readings) {
      const alarm = open.find((one) => isOf(one, reading));
      const level = alarmLevelOf(reading, alarm?.level ?? 0);
      if (level > 0) await keepOrBegin(sql, reading, level, alarm, parts);
      else if (alarm) await clear(sql, alarm, parts);
    }
    for (const alarm of open) if (!readings.some((one) => isOf(alarm, one))) await clear(sql, alarm, parts);
    await sql.query(EVALUATED, []);
    return true;
  });
}

async function keepOrBegin(
  sql: Session,
  { name, subject, title, detail }: Reading,
  level: number,
  before: OpenAlarm | undefined,
  parts: AlarmParts,
): Promise<void> {
  if (before) await sql.query(LAST, [before.id, level, title, detail]);
  const alarm = before ?? (await sql.query<OpenAlarm>(BEGIN, [mintId('alm'), name, subject, level, title, detail]))[0];
  if (!alarm) return;
  const { beginAfterSeconds }: AlarmRule = alarmRules[name];
  const { announced_level: announced, lasts_seconds: lasts } = alarm;
  const isNews = announced === null ? lasts >= beginAfterSeconds : level > announced;
  if (!isNews) return;
  const [row] = await sql.query<AlarmRow>(ANNOUNCE, [alarm.id]);
  if (row) await announce(sql, 'installation.alarm_started', row, parts);
}

async function clear(sql: Session, alarm: OpenAlarm, parts: AlarmParts): Promise<void> {
  await sql.query(CLEAR, [alarm.id]);
  const seconds = alarm.clear_seconds ?? 0;
  if (alarm.announced_level === null) {
    // Nobody was told that it began. What is away every other time must not begin anew each time.
    if (seconds >= FORGOTTEN_SECONDS) await sql.query(FORGET, [alarm.id]);
    return;
  }
  if (seconds < alarmRules[alarm.name].endAfterSeconds) return;
  const [row] = await sql.query<AlarmRow>(END, [alarm.id]);
  if (row) await announce(sql, 'installation.alarm_ended', row, parts);
}

async function announce(sql: Session, event: AlarmEvent, alarm: AlarmRow, parts: AlarmParts): Promise<void> {
  const { id, name, subject, title, detail, begun_at: started_at, ended_at } = alarm;
  const { baseUrl: installation } = parts.config;
  const message = { alarm: { id, name, subject, title, detail, started_at, ended_at }, installation };
  if ((await queueAlarmMessage(sql, event, message)) > 0) return;
  // Of certificates, e-mail is sent where they are renewed.
  if (name === 'certificate') return;
  const addresses = await operatorAddresses(sql);
  if (!addresses.length) return;
  const isOver = event === 'installation.alarm_ended';
  await queueMail({ ...parts, sql }, addresses, {
    subject: isOver ? `Over: ${title}` : title,
    lines: [...(isOver ? [] : [detail]), `Since ${started_at}.`],
    link: `${installation}/installation/alarms`,
  });
}

/** Nobody reads mail at the address that stands for an unset one. */
const NOBODY = 'owner@example.com';
const OPERATORS = named('select email from users where is_operator and email <> $1 order by email');

/** Who gets alarms by e-mail while no notifier is chosen. */
export async function operatorAddresses(sql: Pick<Sql, 'query'>): Promise<string[]> {
  return (await sql.query<{ email: string }>(OPERATORS, [NOBODY])).map(({ email }) => email);
}

const CURRENT = named(`select * from installation_alarms where ended_at is null and announced_at is not null
  order by announced_at desc, id`);
const PAST = named('select * from installation_alarms where ended_at is not null order by ended_at desc, id limit 50');
const EVALUATED_AT = named('select evaluated_at from alarm_evaluations');

/** Alarms of which somebody was told, and that have not ended, newest first. */
export function currentAlarms(sql: Pick<Sql, 'query'>): Promise<AlarmRow[]> {
  return sql.query<AlarmRow>(CURRENT, []);
}

/** Those of the last 90 days that have ended, at most 50. */
export function pastAlarms(sql: Pick<Sql, 'query'>): Promise<AlarmRow[]> {
  return sql.query<AlarmRow>(PAST, []);
}

/** When the alarms were last evaluated; null: never. RFC 3339. */
export async function alarmsEvaluatedAt(sql: Pick<Sql, 'query'>): Promise<string | null> {
  const [row] = await sql.query<{ evaluated_at: string | null }>(EVALUATED_AT, []);
  return row?.evaluated_at ?? null;
}

// An alarm of a machine that evaluates no more says nothing.
const FULL = named(`select title from installation_alarms where ended_at is null and name in ('disk', 'inodes')
    and level >= ${FULL_LEVEL} and exists (select from alarm_evaluations where evaluated_at > now() - interval '10 min')
  order by level desc, id limit 1`);

/** Why nothing may be made that takes room on the disk, as the title of the alarm; null: it may. */
export async function fullDisk(sql: Pick<Sql, 'query'>): Promise<string | null> {
  return (await sql.query<{ title: string }>(FULL, []))[0]?.title ?? null;
}
