// schedules: ls, create, update, rm, run, enable, disable.
import { buildRouteMap } from '@stricli/core';
import { choice, duration, sessionCommand, text, tuple, word, type Shell } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printOne, printRows, type Row } from '../output/print';
import { confirm } from '../output/terminal';
import { namesOf, type Session } from '../session';

const SCHEDULE = tuple(word('schedule', 'Name or id'));
const SETTINGS = {
  cron: text('When it runs, in quotes: "30 2 * * *" or @daily', 'cron'),
  timeZone: text('Time zone of --cron, such as Europe/Berlin', 'zone'),
  command: text('Command, executed by the shell', 'command'),
  process: text('Process type whose size and environment its runs have', 'type'),
  size: text('Size of its runs', 'size'),
  timeout: duration('Time after which a run is ended'),
  concurrency: choice('What a time does while a run is unfinished', ['forbid', 'allow', 'replace']),
  missed: choice('What happens to times that were missed', ['skip', 'run_once']),
};
type Settings = {
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly command?: string | undefined;
  readonly process?: string | undefined;
  readonly size?: string | undefined;
  readonly timeout?: number | undefined;
  readonly concurrency?: 'forbid' | 'allow' | 'replace' | undefined;
  readonly missed?: 'skip' | 'run_once' | undefined;
};
type Output = { json?: boolean | undefined; field?: string | undefined };

const ls = sessionCommand({
  brief: 'List schedules',
  async run(session, flags) {
    const columns = {
      NAME: 'name',
      CRON: 'cron',
      ZONE: 'time_zone',
      NEXT: 'next_run_at',
      'LAST RUN': 'last_run.status',
      ENDED: (row: Row) => formatAge((row.last_run as Row | null)?.finished_at),
      FAILURES: 'failures_in_a_row',
    };
    printRows(await session.list(await pathOf(session)), columns, flags);
  },
});

const create = sessionCommand<Settings, [string]>({
  brief: 'Run a command at certain times',
  text: 'svc schedules create nightly --cron "30 2 * * *" --time-zone Europe/Berlin --command "npm run report"',
  args: tuple(word('name', 'Name')),
  flags: SETTINGS,
  async run(session, flags, name) {
    if (flags.cron === undefined || flags.command === undefined) throw usageFailure('Pass --cron and --command.');
    printSchedule(
      await session.request('POST', await pathOf(session), { body: { name, ...settingsOf(flags) } }),
      flags,
    );
  },
});

const update = sessionCommand<Settings & { readonly name?: string | undefined }, [string]>({
  brief: 'Change a schedule',
  args: SCHEDULE,
  flags: { name: text('New name', 'name'), ...SETTINGS },
  async run(session, flags, given) {
    const body = { ...(flags.name !== undefined && { name: flags.name }), ...settingsOf(flags) };
    if (!Object.keys(body).length) throw usageFailure('Pass what to change, such as --cron.');
    await change(session, given, body, flags);
  },
});

const rm = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete a schedule',
  asks: true,
  output: false,
  args: SCHEDULE,
  async run(session, flags, given) {
    const { id, name } = await findSchedule(session, given);
    await confirm(`Delete the schedule ${name}? \`svc undo\` takes it back.`, flags);
    await session.send('DELETE', `${await pathOf(session)}/${id}`);
    notice(`Deleted the schedule ${name}.`);
  },
});

const run = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Run the command of a schedule now',
  args: SCHEDULE,
  async run(session, flags, given) {
    const { id } = await findSchedule(session, given);
    const row = await session.request('POST', `${await pathOf(session)}/${id}/trigger`);
    printOne(row, flags, { run: 'id', command: 'command', status: 'status' });
  },
});

const enable = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Let a schedule run at its times again',
  args: SCHEDULE,
  run: (session, flags, given) => change(session, given, { enabled: true }, flags),
});

const disable = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Keep a schedule from running at its times',
  args: SCHEDULE,
  run: (session, flags, given) => change(session, given, { enabled: false }, flags),
});

function settingsOf(flags: Settings): Record<string, unknown> {
  const { cron, timeZone, command, process, size, timeout, concurrency, missed } = flags;
  const fields = {
    ...{ cron, time_zone: timeZone, command, process_type: process, application_type: size },
    ...{ timeout_seconds: timeout, concurrency, missed },
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

async function change(session: Session, given: string, body: object, flags: Output): Promise<void> {
  const { id } = await findSchedule(session, given);
  printSchedule(await session.request('PATCH', `${await pathOf(session)}/${id}`, { body }), flags);
}

const pathOf = async (session: Session): Promise<string> => `/v2/applications/${await session.application()}/schedules`;

async function findSchedule(session: Session, given: string): Promise<Row> {
  const rows = await session.list(await pathOf(session));
  const found = rows.find((row) => row.name === given) ?? rows.find((row) => row.id === given);
  if (found) return found;
  const names = namesOf(rows.map((row) => ({ id: String(row.id), name: String(row.name) })));
  throw new Failure(`The application has no schedule ${given}.`, EXIT.notFound, [names]);
}

function printSchedule(row: Row, flags: Output): void {
  printOne(row, flags, {
    schedule: 'id',
    name: 'name',
    cron: 'cron',
    'time zone': 'time_zone',
    command: 'command',
    enabled: 'enabled',
    next: 'next_run_at',
    reason: 'status_reason',
  });
}

export const schedules = buildRouteMap<string, Shell>({
  routes: { ls, create, update, rm, run, enable, disable },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Commands that run at certain times' },
});
