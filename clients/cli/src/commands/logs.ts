// logs of the application, of a deployment or of a preview.
import { choice, integer, sessionCommand, text, toggle, parseDuration } from '../command';
import { usageFailure } from '../failure';
import { followEvents } from '../follow';
import { writeLine, type Row } from '../output/print';
import { clean, colour, isTerminal } from '../output/terminal';
import { EXIT } from '../failure';
import { findDeployment } from './deploy';

type LogFlags = {
  readonly follow?: boolean | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly source?: 'app' | 'router' | 'system' | undefined;
  readonly level?: 'debug' | 'info' | 'warning' | 'error' | undefined;
  readonly process?: string | undefined;
  readonly search?: string | undefined;
  readonly deployment?: string | undefined;
  readonly preview?: string | undefined;
  readonly lines?: number | undefined;
};

const LINES = 100;

export const logs = sessionCommand<LogFlags>({
  brief: 'Show or follow the log',
  text:
    'Shows the last lines, oldest first. With --follow, the log goes on until Ctrl-C; after a broken connection it ' +
    'continues without a gap. With --json, each line is a JSON object of its own.',
  flags: {
    follow: toggle('Follow the log'),
    since: text('Begin at a time, or so long ago: 15m, 2h, 1d, 2026-05-01T10:00Z', 'time'),
    until: text('End at a time, or so long ago', 'time'),
    source: choice('Only lines of the program, the router or the platform', ['app', 'router', 'system']),
    level: choice('Only lines of this level', ['debug', 'info', 'warning', 'error']),
    process: text('Only lines of this process type', 'type'),
    search: text('Only lines that contain this text', 'text'),
    deployment: text('The log of building and releasing this deployment', 'number'),
    preview: text('The log of a preview', 'id'),
    lines: integer('Number of lines', 1, 1000),
  },
  aliases: { f: 'follow', n: 'lines' },
  async run(session, flags) {
    if (flags.follow && flags.until) throw usageFailure('--follow has no end: leave out --until.');
    const application = await session.application();
    const { deployment } = flags;
    const path = deployment
      ? `/v2/applications/${application}/deployments/${await findDeployment(session, application, deployment)}/logs`
      : `/v2/applications/${application}/logs`;
    const query = {
      ...{ limit: flags.lines ?? LINES, search: flags.search, level: flags.level, source: flags.source },
      since: flags.since && toTimestamp(flags.since, '--since'),
      until: flags.until && toTimestamp(flags.until, '--until'),
      ...(!deployment && { process_type: flags.process, preview_id: flags.preview }),
    };
    const show = (row: Row): void =>
      writeLine(flags.json ? JSON.stringify(row) : flags.field ? String(row[flags.field] ?? '') : formatLogLine(row));
    if (!flags.follow) {
      const { data } = await session.request<{ data: Row[] }>('GET', path, { query });
      return data.reverse().forEach(show);
    }
    process.once('SIGINT', () => process.exit(EXIT.interrupted));
    await followEvents(session, path, query, show);
  },
});

/** RFC 3339, from a time stamp or a time before now. */
function toTimestamp(given: string, flag: string): string {
  if (/^\d+[smhd]?$/.test(given)) return new Date(Date.now() - parseDuration(given) * 1000).toISOString();
  const time = Date.parse(given);
  if (Number.isNaN(time)) throw usageFailure(`${flag} must be a time such as 15m, 2h, 1d or 2026-05-01T10:00:00Z.`);
  return new Date(time).toISOString();
}

const SOURCE_COLOURS = { app: 'cyan', router: 'magenta', system: 'yellow' } as const;

function formatLogLine(row: Row): string {
  const time = String(row.timestamp);
  const source = String(row.process_type ?? row.step ?? row.source);
  const message = isTerminal() ? clean(String(row.message)) : String(row.message);
  const shown = isTerminal() ? colour(new Date(time).toTimeString().slice(0, 8), 'dim') : time;
  const name = colour(source, SOURCE_COLOURS[row.source as 'app'] ?? 'blue');
  return `${shown} ${name} ${row.level === 'error' ? colour(message, 'red') : message}`;
}
