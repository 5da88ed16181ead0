// starting: the unit is started, and waited for until it is healthy. Also of a crashed instance, now and then.
import { databaseTrust } from '../../databases/database/trust';
import { DriverError } from '../../../core/driver';
import { overrideVariables } from '../../../core/process/variables';
import type { Handle, UnitSpec } from '../../../drivers/runtime';
import { defaultUrl } from '../../../models/applications/application/url';
import { platformVariables } from '../../../models/deployments/deployment_plan';
import { takenPorts, type Launch } from '../../../models/applications/instance_work';
import { variablesOfRelease } from '../../../models/deployments/release';
import { jittered, progressing, settled, type JobContext, type Outcome, requireHost } from '../../job';
import { rangeDirectory } from '../application/user_range';
import { instanceArtifactDirectory } from './artifact';
import { restartDelayMs } from '../../restart_backoff';
import { restartAfterEnd, withOutput } from './exit';
import { probeHealth, CONNECTION_REFUSED } from './health';
import { exposedPortOf, imageHealthCheckOf, unitImageOf } from './image';
import { allowedSecondsOf, findImageHealth } from './image_health';
import { requireMounts } from './mounts';
import { moveToOtherPort, portFault, type HealthFault } from './other_port';
import { hasHealthCheck, appendInstanceLog, WEB, type InstanceRow } from './row';
import { checkIntervalMs } from './running';

/** Process types that take no requests count as running once they have stayed up so long. */
const STAYED_UP_MS = 2_000;
const FREQUENT_CHECKS_MS = 5_000;
const CHECK_MS = { first: 250, later: 500 };
const RETRY_START_MS = 10_000;
const PORT_ATTEMPTS = 5;
/** Threads count too: run times of large languages start dozens. */
const PROCESSES_MAX = 512;
const OUTPUT_BYTES = 16 * 2 ** 20;
const UNIQUE = '23505';
/** A different port that opens before this time may belong to a debugger or a metrics endpoint. */
const EARLY_MS = 3_000;

/** There is no unit: the next one is started when its time has come. */
export async function startInstance(row: InstanceRow, launch: Launch, ctx: JobContext): Promise<Outcome> {
  const wait = restartDelayMs(row);
  if (wait > 0) return progressing(wait);
  try {
    const port = await choosePort(row, launch, ctx);
    const spec = await instanceSpecOf(row, launch, port, ctx);
    const handle = await requireHost(ctx).runtime.start(spec, ctx);
    // Recorded at once: after a crash the unit is also found by its id, but its start time would be lost.
    await ctx.record({ handle, started_at: new Date().toISOString() });
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    if (error.reason === 'transient') {
      // Retried soon; until then the reason is shown to users.
      if (!ctx.signal.aborted) await ctx.record({ status_reason: error.message });
      throw error;
    }
    return progressing(RETRY_START_MS, { status_reason: error.message, observed: { fault: 'start' } });
  }
  return progressing(CHECK_MS.first);
}

/** The unit runs: is it healthy? */
export async function checkStarting(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  ctx: JobContext,
): Promise<Outcome> {
  const upMs = Date.now() - Date.parse(row.started_at ?? new Date().toISOString());
  if (!hasHealthCheck(row, launch))
    return upMs >= STAYED_UP_MS ? becomeRunning(row, launch, ctx) : progressing(STAYED_UP_MS - upMs);
  const fault = (await healthFault(row, launch, handle, ctx)) ?? (await imageFault(row, launch, handle, ctx));
  if (fault === null) return becomeRunning(row, launch, ctx);
  const allowed = allowedSeconds(row, launch);
  if (upMs < allowed * 1000 && !fault.isOver) {
    const moved =
      fault.otherPort === undefined
        ? null
        : await moveToOtherPort(row, launch, handle, { port: fault.otherPort, upMs, allowedMs: allowed * 1000 }, ctx);
    if (moved !== null) return moved;
    const nextMs = upMs < FREQUENT_CHECKS_MS ? CHECK_MS.first : CHECK_MS.later;
    if (fault.early === undefined || upMs < EARLY_MS || row.status_reason === fault.early) return progressing(nextMs);
    await appendInstanceLog(row, ctx, fault.early, 'warning');
    return progressing(nextMs, { status_reason: fault.early });
  }
  const reason = (output: string): string => `The app ${fault.after(allowed)}${withOutput(output)}`;
  return restartAfterEnd(row, launch, handle, { reason, fault: 'health' }, ctx);
}

/** null when it is healthy. */
async function healthFault(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  ctx: JobContext,
): Promise<HealthFault | null> {
  const port = row.port ?? 0;
  const { runtime } = requireHost(ctx);
  const target = { location: runtime.locationOf(handle.unit_id), port };
  const failure = await probeHealth(launch.settings.health_check, target, launch.hostname, ctx.signal);
  const listeners = await runtime.listeners(handle);
  // The response comes from a foreign program: any program of the host can bind a port before the instance does.
  const foreign = failure === null && listeners !== null && !listeners.some((one) => one.port === port);
  if (failure === null && !foreign) return null;
  if (failure !== CONNECTION_REFUSED && !foreign)
    return { after: (seconds) => `did not become healthy within ${seconds} seconds: it ${failure}.` };
  return portFault(row, launch, listeners ?? [], ctx);
}

/** Once the instance listens. */
async function imageFault(
  row: InstanceRow,
  { settings }: Launch,
  handle: Handle,
  ctx: JobContext,
): Promise<HealthFault | null> {
  const check = imageHealthCheckOf(row, settings);
  if (check === null) return null;
  const { failure, isOver } = await findImageHealth(check, handle, ctx);
  if (failure === null) return null;
  return { isOver, after: () => `did not become healthy: it ${failure}.` };
}

function allowedSeconds(row: InstanceRow, { settings }: Launch): number {
  const ofImage = imageHealthCheckOf(row, settings);
  if (ofImage) return allowedSecondsOf(ofImage);
  const { grace_period_seconds, failure_threshold, interval_seconds } = settings.health_check;
  return grace_period_seconds || failure_threshold * interval_seconds;
}

async function becomeRunning(row: InstanceRow, launch: Launch, ctx: JobContext): Promise<Outcome> {
  await appendInstanceLog(row, ctx, row.restart_count ? 'The instance is running again.' : 'The instance is running.');
  return settled(
    { status: 'running', status_reason: null, observed: null, misses: 0 },
    jittered(checkIntervalMs(row, launch)),
  );
}

/** Chooses a new port for each start: leftover processes of the previous start may still hold theirs. */
async function choosePort(row: InstanceRow, launch: Launch, ctx: JobContext): Promise<number> {
  for (let turn = 1; ; turn += 1) {
    const port = await requireHost(ctx).runtime.freePort(await takenPorts(ctx.sql), launch.project_id);
    try {
      await ctx.record({ port });
      return port;
    } catch (error) {
      if ((error as { code?: string }).code !== UNIQUE || turn === PORT_ATTEMPTS) throw error;
    }
  }
}

/** @throws DriverError invalid without a command; transient */
export async function instanceSpecOf(
  row: Pick<InstanceRow, 'id' | 'application_id' | 'preview_id' | 'process_type'>,
  launch: Launch,
  port: number,
  ctx: JobContext,
): Promise<UnitSpec> {
  if (!launch.process) throw new DriverError('invalid', `The process type ${row.process_type} has no command.`);
  const { command, memory_mb, cpus, disk_mb = null } = launch.process;
  const trust = await databaseTrust(launch.databases, ctx);
  const image = unitImageOf(launch.settings, command);
  const health_check = imageHealthCheckOf(row, launch.settings);
  const ownPort = exposedPortOf(row, launch.settings) ?? (row.process_type === WEB ? launch.found_port : null);
  const exposed = requireHost(ctx).runtime.exposesPorts ? ownPort : null;
  return {
    id: row.id,
    kind: 'service',
    command,
    directory: instanceArtifactDirectory(launch, ctx),
    image: image && { ...image, ...(health_check && { health_check }) },
    root_directory: launch.settings.root_directory,
    mounts: row.preview_id === null ? await requireMounts(ctx.sql, row.application_id) : [],
    env: overrideVariables(
      { ...launch.planned_variables, ...trust.env },
      await variablesFor(row, launch, exposed ?? port, ctx),
    ),
    readable: trust.readable,
    tenant: launch.tenant,
    ...(image && { user_range: rangeDirectory(row.application_id, ctx) }),
    network: launch.project_id,
    ...(exposed !== null && { exposed: { port: exposed, reached_at: port } }),
    limits: { memory_mb, cpus, processes: PROCESSES_MAX, time_ms: null, output_bytes: OUTPUT_BYTES, disk_mb },
  };
}

async function variablesFor(
  row: Pick<InstanceRow, 'id' | 'preview_id' | 'process_type'>,
  launch: Launch,
  port: number,
  ctx: JobContext,
): Promise<Record<string, string>> {
  const { http, https } = requireHost(ctx).ingress.ports;
  return {
    ...variablesOfRelease(ctx.secrets, { id: launch.release_id, variables: launch.variables }),
    ...platformVariables({ ...launch, preview_id: row.preview_id }),
    SVC_PROCESS_TYPE: row.process_type,
    SVC_INSTANCE_ID: row.id,
    SVC_HOSTNAME: launch.hostname,
    SVC_URL: await defaultUrl(ctx.sql, { ...ctx.config, ingressPort: http, ingressTlsPort: https }, launch.hostname),
    PORT: String(port),
  };
}
