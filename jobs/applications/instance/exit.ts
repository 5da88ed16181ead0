// An instance has ended, or is ended because it is not healthy: it starts again after a while.
import {
  describeEnd,
  endSentence,
  FAILURE_LINES_MAX,
  failureExcerpt,
  valuesHider,
} from '../../../core/log/failure_excerpt';
import { lineEndHint } from '../../../drivers/builder/line_ends';
import { FILES_PER_MB, type Handle, type RuntimeDriver, type UnitState } from '../../../drivers/runtime';
import { forgetFoundPort, type Launch } from '../../../models/applications/instance_work';
import { progressing, type JobContext, type Outcome, requireHost } from '../../job';
import { shipLastLines } from '../../unit_log';
import { instanceArtifactDirectory } from './artifact';
import { isCrashed, restartDelayMs, appendExit } from '../../restart_backoff';
import { exposedPortOf, sharedPortAdvice } from './image';
import { appendInstanceLog, restartStop, type InstanceRow } from './row';
import { findLastOutput } from '../../../models/applications/log_line/last_output';
import { variablesOfRelease } from '../../../models/deployments/release';

interface ExitCause {
  /** Sentences for users. @param output the last output of the program, '' if there is none */
  reason(output: string): string;
  /** The app has not exited: it has to be stopped. */
  fault?: 'health';
}

export async function restartAfterEnd(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  { reason, fault }: ExitCause,
  ctx: JobContext,
): Promise<Outcome> {
  const { runtime } = requireHost(ctx);
  // No new requests from now on; open ones continue until it stops.
  if (fault && row.status === 'running') await ctx.record({ status: 'starting', status_reason: reason('') });
  // Read before the app logs its own shutdown.
  const before = fault && (await lastOutputOf(row, launch, ctx));
  if (fault) await runtime.stop(handle, restartStop(launch), ctx);
  if (row.status === 'starting' && launch.own_found_port) await forgetFoundPort(ctx.sql, launch.deployment_id);
  await shipLastLines(requireHost(ctx), row.id);
  await runtime.destroy(row.id, ctx);
  const said = reason(before ?? (await lastOutputOf(row, launch, ctx)));
  const text = fault ? said : `${said}${await lineEndHintOf(launch, said, ctx)}`;
  const exits = appendExit(row.exits, new Date());
  const status = isCrashed(exits) || row.status === 'crashed' ? 'crashed' : 'starting';
  await appendInstanceLog(
    row,
    ctx,
    `${text}${status === 'crashed' ? ' It has ended several times, so the platform restarts it once a minute.' : ''}`,
    'error',
  );
  const columns = {
    handle: null,
    port: null,
    started_at: null,
    exits,
    misses: 0,
    restart_count: row.restart_count + 1,
    status_reason: text,
    observed: fault ? { fault } : null,
  };
  return progressing(restartDelayMs({ exits, status }), { ...columns, status });
}

function lineEndHintOf(launch: Launch, reason: string, ctx: JobContext): Promise<string> {
  const { root_directory, image } = launch.settings;
  const place = image?.working_directory ?? root_directory;
  return lineEndHint(instanceArtifactDirectory(launch, ctx), [place], [launch.process?.command ?? '', reason]);
}

/** There is no trace of the unit, for instance after the host has started again. It is not the app's fault. */
export function restartLostUnit(row: InstanceRow): Outcome {
  const status = row.status === 'running' ? 'starting' : row.status;
  return progressing(0, {
    handle: null,
    port: null,
    started_at: null,
    misses: 0,
    ...(row.handle && { restart_count: row.restart_count + 1 }),
    status,
  });
}

type Exited = Extract<UnitState, { state: 'exited' }>;

const SOON_MS = 5_000;

/** `The app exited with code 1 right after its start: Error: no database.` */
export function exitReasonOf(
  row: InstanceRow,
  { process, settings }: Launch,
  { code, signal, killed, at }: Exited,
  { exposesPorts }: Pick<RuntimeDriver, 'exposesPorts'>,
  output: string,
): string {
  const diskMb = process?.disk_mb ?? 0;
  if (killed === 'memory')
    return (
      `The app was ended because it used more than ${process?.memory_mb ?? 0} MB of memory. ` +
      'Choose a larger size, or reduce the memory that it uses.'
    );
  if (killed === 'disk')
    return (
      `The app was ended because its files grew beyond ${diskMb} MB or ${diskMb * FILES_PER_MB} files. ` +
      'Keep lasting files on a volume, choose a larger size, or delete files that are not needed.'
    );
  if (killed !== null) return `The app was ended by the platform (${killed}).`;
  const since = sinceStart(row, at);
  if (code === 0)
    return `The app exited with code 0${since}. Its command must run until it is stopped.${withOutput(output)}`;
  const cause = output === '' ? '.' : `: ${endSentence(output)}`;
  if (code === null) return `The app ${describeEnd({ code, signal })}${since}${cause}`;
  const hint = code === 127 ? ' A program in its command was not found.' : '';
  const exposed = exposesPorts ? null : exposedPortOf(row, settings);
  // It may have been refused the port that it chose.
  const advice = exposed !== null && row.status === 'starting' ? ` ${sharedPortAdvice(exposed, settings)}` : '';
  return `The app exited with code ${code}${since}${cause}${hint}${advice}`;
}

/** Behind a reason that says something else. */
export function withOutput(output: string): string {
  return output === '' ? '' : ` Its last output: ${endSentence(output)}`;
}

function sinceStart({ started_at }: InstanceRow, at: string): string {
  if (!started_at) return '';
  const ms = Date.parse(at) - Date.parse(started_at);
  if (ms < SOON_MS) return ' right after its start';
  const [count, unit] =
    ms < 120_000 ? [ms / 1000, 'seconds'] : ms < 7_200_000 ? [ms / 60_000, 'minutes'] : [ms / 3_600_000, 'hours'];
  return ` after ${Math.round(count as number)} ${unit}`;
}

/** Last output since the last start; '' if there is none. Values of variables are redacted. */
async function lastOutputOf(row: InstanceRow, launch: Launch, ctx: JobContext): Promise<string> {
  const { id, application_id, preview_id, started_at } = row;
  const since = started_at ?? undefined;
  const lines = await findLastOutput(ctx.sql, preview_id ?? application_id, id, FAILURE_LINES_MAX, since);
  const variables = variablesOfRelease(ctx.secrets, { id: launch.release_id, variables: launch.variables });
  return failureExcerpt(
    lines.map(({ message }) => message),
    valuesHider(variables),
  );
}
