// The unit of a run: as an instance of its release would be, without a port, and with the command of the run.
import { stat } from 'node:fs/promises';
import { DriverError } from '../../../core/driver';
import { overrideVariables } from '../../../core/process/variables';
import type { UnitSpec } from '../../../drivers/runtime';
import { defaultUrl } from '../../../models/applications/application/url';
import { platformVariables } from '../../../models/deployments/deployment_plan';
import { sizeOf, variablesOfRelease } from '../../../models/deployments/release';
import { openVariables } from '../../../models/runs/run/variables';
import { findRunLaunch, type RunLaunch } from '../../../models/runs/run/job_queries';
import { unitImageOf } from '../../applications/instance/image';
import { requireMounts } from '../../applications/instance/mounts';
import { databaseTrust } from '../../databases/database/trust';
import { rangeDirectory } from '../../applications/application/user_range';
import { artifactDirectory } from '../../deployments/deployment/row';
import { type JobContext, requireHost } from '../../job';
import type { RunRow } from './row';

/** Threads count too: run times of large languages start dozens. */
const PROCESSES_MAX = 512;

/** @throws DriverError invalid where the files of the release are no longer kept; transient */
export async function unitSpecOf(row: RunRow, ctx: JobContext): Promise<UnitSpec> {
  const launch = await findRunLaunch(ctx.sql, row.id);
  const directory = launch && artifactDirectory({ id: row.deployment_id, artifact_id: launch.artifact_id }, ctx);
  if (!launch || !directory || !(await stat(directory).catch(() => null)))
    throw new DriverError('invalid', 'The files of the release are no longer kept. Deploy the application again.');
  const trust = await databaseTrust(launch.databases, ctx);
  const image = unitImageOf(launch.settings, row.command);
  const isRelease = row.trigger_type === 'release';
  const { memory_mb, cpus, disk_mb } = sizeOf(row.application_type);
  return {
    id: row.id,
    kind: 'task',
    // People let release commands write files that the instances then have.
    ...(!isRelease && { own_copy: true as const }),
    command: row.command,
    directory,
    image,
    root_directory: launch.settings.root_directory,
    mounts: row.preview_id === null ? await requireMounts(ctx.sql, row.application_id) : [],
    env: overrideVariables({ ...launch.planned_variables, ...trust.env }, await variablesFor(row, launch, ctx)),
    readable: trust.readable,
    tenant: launch.tenant,
    ...(image && { user_range: rangeDirectory(row.application_id, ctx) }),
    network: row.project_id,
    ...(!row.detached && { input: row.tty ? ('terminal' as const) : ('pipe' as const) }),
    limits: {
      memory_mb,
      cpus,
      processes: PROCESSES_MAX,
      time_ms: row.timeout_seconds * 1000,
      output_bytes: ctx.config.buildOutputMb * 2 ** 20,
      disk_mb: isRelease ? ctx.config.buildDiskMb : (disk_mb ?? null),
    },
  };
}

/** Those of its release, of the platform, and its own, which win. */
export async function variablesFor(row: RunRow, launch: RunLaunch, ctx: JobContext): Promise<Record<string, string>> {
  const { http, https } = requireHost(ctx).ingress.ports;
  const { release_id, application_id, deployment_id, preview_id } = row;
  return {
    ...(row.tty && { TERM: 'xterm-256color' }),
    ...variablesOfRelease(ctx.secrets, { id: release_id, variables: launch.variables }),
    ...platformVariables({ ...launch, application_id, deployment_id, preview_id }),
    SVC_PROCESS_TYPE: row.process_type,
    SVC_RUN_ID: row.id,
    SVC_HOSTNAME: launch.hostname,
    SVC_URL: await defaultUrl(ctx.sql, { ...ctx.config, ingressPort: http, ingressTlsPort: https }, launch.hostname),
    ...openVariables(ctx.secrets, row),
  };
}
