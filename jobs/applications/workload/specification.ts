// From the row of a workload to what a cluster is told to run.
import type { Sql } from '../../../core/context';
import { DriverError, EngineAway } from '../../../core/driver';
import type { ImageSettings } from '../../../core/protocols/image_settings';
import { DEFAULT_PORT, LAUNCH, RELEASE_USER } from '../../../drivers/release_image/launch_layer';
import { withInit } from '../../../drivers/release_image/init_script';
import { CLUSTER_VOLUMES } from '../../../drivers/volume';
import type { Workload, WorkloadHealth, WorkloadImage, WorkloadVolume } from '../../../drivers/workload';
import { attachedVolumes } from '../../../models/applications/instance_work';
import { defaultUrl } from '../../../models/applications/application/url';
import type { WorkloadLaunch } from '../../../models/applications/workload';
import { platformVariables } from '../../../models/deployments/deployment_plan';
import { variablesOfRelease } from '../../../models/deployments/release';
import { requireHost, type JobContext, type LoopRow } from '../../job';
import { exposedPortOf, imageHealthCheckOf, unitImageOf } from '../instance/image';
import { WEB } from '../instance/row';
import { podDatabases } from './databases';

export interface WorkloadRow extends LoopRow {
  project_id: string;
  application_id: string;
  preview_id: string | null;
  process_type: string;
  deployment_id: string;
  release_id: string;
  instances: number;
  /** Why its instances cannot be created, as a sentence; null: never applied. */
  observed: { obstacle: string | null } | null;
  /** RFC 3339. */
  updated_at: string;
}

/** Nodes pull for as long as an instance may be moved while the control plane is away. */
const LOGIN_SECONDS = 90 * 86_400;

/** @throws DriverError `invalid` or `unsupported` for what a cluster cannot run */
export async function workloadOf(row: WorkloadRow, launch: WorkloadLaunch, ctx: JobContext): Promise<Workload> {
  const { settings, process } = launch;
  if (!process) throw new DriverError('invalid', `The process type ${row.process_type} has no command.`);
  const port = row.process_type === WEB ? portOf(row, launch) : null;
  const volumes = await volumesOf(row, ctx.sql);
  const variables = await variablesFor(row, launch, port, ctx);
  return {
    ...{ id: row.id, project_id: row.project_id, application_id: row.application_id, preview_id: row.preview_id },
    ...{ application_name: launch.application_name, process_type: row.process_type, release_id: row.release_id },
    instances: row.instances,
    image: pullableImage(launch, ctx),
    ...programOf(row, settings.image, process.command),
    ...(await podDatabases(variables, launch.databases, ctx)),
    priority_class: row.preview_id === null ? null : ctx.config.kubernetesPreviewPriorityClass,
    volumes,
    port,
    health: port === null ? null : healthOf(row, launch),
    limits: { memory_mb: process.memory_mb, cpus: process.cpus, disk_mb: process.disk_mb ?? null },
    shutdown_grace_seconds: settings.run.shutdown_grace_seconds,
  };
}

/** @throws DriverError for volumes that pods cannot have, or cannot have yet */
export async function volumesOf(
  { application_id, preview_id }: Pick<WorkloadRow, 'application_id' | 'preview_id'>,
  sql: Sql,
): Promise<WorkloadVolume[]> {
  if (preview_id !== null) return [];
  return (await attachedVolumes(sql, application_id)).map(({ id, name, mount_path, driver }) => {
    if (driver === null) throw new DriverError('transient', `The volume ${name} is not ready.`);
    if (driver !== CLUSTER_VOLUMES)
      throw new DriverError(
        'unsupported',
        `The volume ${name} is on the machine of the platform, where applications on a cluster do not reach it. ` +
          'Detach the volume.',
      );
    return { id, mount_path };
  });
}

type Program = Pick<Workload, 'command' | 'is_first_process' | 'user'>;

/** Entry points of images that supervise others, and end where they are not process 1, as that of s6-overlay. */
const INIT_PROGRAM = /(^|\/)((my_)?init|systemd)$/;

function programOf({ process_type }: WorkloadRow, image: ImageSettings | undefined, command: string): Program {
  if (!image)
    return {
      command: [LAUNCH, process_type],
      is_first_process: true,
      user: { uid: RELEASE_USER, gid: RELEASE_USER },
    };
  const { uid, gid } = requireOrdinaryUser(image);
  const words = imageCommandOf(image, command);
  const isOwn = words.join('\0') === (image.command ?? []).join('\0');
  return {
    command: isOwn ? null : words,
    is_first_process: INIT_PROGRAM.test(words[0] ?? ''),
    user: { uid, gid },
  };
}

/** What an image is started with for a command of a process type or a run: with an init before a shell. */
export function imageCommandOf(image: ImageSettings, command: string): string[] {
  return withInit(unitImageOf({ image }, command)?.command ?? ['/bin/sh', '-c', command]);
}

/** @throws DriverError `invalid` for root */
export function requireOrdinaryUser({ user }: ImageSettings): ImageSettings['user'] {
  if (user.uid !== 0) return user;
  throw new DriverError(
    'invalid',
    'The image runs as root, which the cluster does not allow. Name another user with USER in its Dockerfile.',
  );
}

function portOf(row: WorkloadRow, { settings, found_port }: WorkloadLaunch): number {
  return exposedPortOf(row, settings) ?? found_port ?? Number(DEFAULT_PORT);
}

/** @throws DriverError */
export function pullableImage({ image }: Pick<WorkloadLaunch, 'image'>, ctx: JobContext): WorkloadImage {
  if (image === null)
    throw new DriverError(
      'invalid',
      'The commands of the release have changed since its image was made. Deploy again.',
    );
  const { registry } = requireHost(ctx);
  if (!registry) throw new EngineAway('The container registry of this installation is not running.');
  const { registryUrlForNodes, registryHost } = ctx.config;
  const host = registryUrlForNodes === null ? registryHost : new URL(registryUrlForNodes).host;
  const repository = image.slice(0, image.indexOf('@'));
  const ends_at = new Date(Date.now() + LOGIN_SECONDS * 1000).toISOString();
  return {
    reference: `${host}/${image}`,
    login: { host, ...registry.pullLogin(repository, LOGIN_SECONDS), ends_at },
  };
}

async function variablesFor(
  row: WorkloadRow,
  launch: WorkloadLaunch,
  port: number | null,
  ctx: JobContext,
): Promise<Record<string, string>> {
  const { http, https } = requireHost(ctx).ingress.ports;
  const { commit_sha, hostname } = launch;
  return {
    ...variablesOfRelease(ctx.secrets, { id: row.release_id, variables: launch.variables }),
    ...platformVariables({ ...launch, ...row, commit_sha }),
    SVC_PROCESS_TYPE: row.process_type,
    SVC_HOSTNAME: hostname,
    SVC_URL: await defaultUrl(ctx.sql, { ...ctx.config, ingressPort: http, ingressTlsPort: https }, hostname),
    ...(port !== null && { PORT: String(port) }),
  };
}

function healthOf(row: WorkloadRow, { settings, hostname }: WorkloadLaunch): WorkloadHealth | null {
  const ofImage = imageHealthCheckOf(row, settings);
  if (ofImage)
    return {
      check: { type: 'command', command: ofImage.command },
      interval_seconds: ofImage.interval_seconds,
      timeout_seconds: ofImage.timeout_seconds,
      failure_threshold: ofImage.retries,
      start_seconds: ofImage.start_period_seconds + ofImage.interval_seconds * ofImage.retries,
    };
  const { type, path, interval_seconds, timeout_seconds, failure_threshold, grace_period_seconds } =
    settings.health_check;
  if (type === 'none') return null;
  return {
    check: type === 'http' ? { type: 'http', path: path ?? '/', host: hostname } : { type: 'tcp' },
    ...{ interval_seconds, timeout_seconds, failure_threshold },
    start_seconds: grace_period_seconds || failure_threshold * interval_seconds,
  };
}
