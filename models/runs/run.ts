import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { mintId, timeOfId } from '../../core/ids';
import { limits } from '../../core/limits';
import { defineStates } from '../../core/states';
import { columnsOf, sessionOf, tableOf } from '../../db/table';
import type {
  CreateRunInput,
  QueryListRunsArgs,
  RunAttachment,
  RunStatus,
  RunTriggerType,
  RunVariableInput,
} from '../../schema/types';
import { Application } from '../applications/application';
import { Instance } from '../applications/instance';
import { requireType } from '../applications/application/plan';
import { page, type Page, type Source } from '../base/page';
import type { ParentLimit } from '../base/quota';
import { Resource } from '../base/resource';
import { isReservedVariable, requireFittingValues } from '../environment/environment_variable';
import { Preview } from '../previews/preview';
import { releaseOfInstance, requireRelease, type ReleaseOfRun } from './run/release';
import { sealVariables } from './run/variables';
import { podOfInstance } from './run/entered';
import { hasWriter } from './run/writer';

/** Subprotocol of the WebSocket that `attachRun` becomes. */
export const RUN_PROTOCOL = 'platform.run.v1';

/** Rows that quotas count: release commands are not among them, so that no run keeps a deployment from its end. */
const COUNTED = `status in ('queued', 'starting', 'running') and trigger_type <> 'release'`;
/** Of an application, without those whose command has ended and whose output is still being stored. */
const NOT_EXITED = `${COUNTED} and exit_code is null`;

/** What started a run; `id`: of a schedule or a deployment. */
export interface RunTrigger {
  type: RunTriggerType;
  id: string | null;
}

const BY_REQUEST: RunTrigger = { type: 'api', id: null };

/** A command that runs once, in the environment that a release has. */
export class Run extends Resource {
  static readonly table = 'runs';
  static readonly kind = 'run';
  static readonly idPrefix = 'run';
  static override readonly filters = {
    status: 'status = ?',
    process_type: 'process_type = ?',
    trigger_type: 'trigger_type = ?',
    preview_id: 'preview_id = ?',
    instance_id: 'instance_id = ?',
  };
  static override readonly quotas = [{ resource: 'runs', where: COUNTED }];
  static override readonly parentLimit: ParentLimit = {
    column: 'application_id',
    max: limits.unfinishedRunsPerApplication,
    resource: 'runs',
    parent: 'An application',
    rows: 'unfinished runs',
    where: NOT_EXITED,
  };
  static override readonly states = defineStates<RunStatus>({
    initial: ['queued'],
    transitional: ['queued', 'starting', 'running'],
    moves: {
      queued: ['starting', 'failed', 'canceled'],
      starting: ['running', 'succeeded', 'failed', 'canceled', 'timed_out'],
      running: ['succeeded', 'failed', 'canceled', 'timed_out'],
    },
  });

  declare application_id: string;
  declare preview_id: string | null;
  declare instance_id: string | null;
  declare release_id: string;
  declare deployment_id: string;
  declare command: string;
  declare process_type: string;
  declare env: string[];
  declare application_type: string;
  declare timeout_seconds: number;
  declare tty: boolean;
  declare detached: boolean;
  declare status: RunStatus;
  declare status_reason: string | null;
  declare exit_code: number | null;
  declare signal: string | null;
  declare trigger_type: RunTriggerType;
  declare trigger_id: string | null;
  declare started_at: string | null;
  declare finished_at: string | null;

  /**
   * One page: of a preview where `preview_id` names one, else of the application itself. @throws not_found,
   * invalid_cursor
   */
  static async list(ctx: Context, { id, ...args }: QueryListRunsArgs): Promise<Page<Run>> {
    await Application.get(ctx, id);
    return page(Run, ctx, args, { application_id: id }, args.preview_id == null ? ownRuns(ctx) : undefined);
  }

  /** A run of the application or of one of its previews. @throws not_found */
  static async ofApplication(ctx: Context, applicationId: string, id: string): Promise<Run> {
    await Application.get(ctx, applicationId);
    return Run.get(ctx, id, { application_id: applicationId });
  }

  /**
   * Queues a command for the release in service.
   * @throws not_found, reference_not_found, capacity_unavailable, env_key_reserved, invalid_state, quota_exceeded
   */
  static async create(
    ctx: Context,
    applicationId: string,
    input: CreateRunInput,
    trigger: RunTrigger = BY_REQUEST,
  ): Promise<Run> {
    const application = await Application.ofChild(ctx, applicationId);
    const variables = input.env ?? [];
    requireUnreserved(variables);
    requireFittingValues(Object.fromEntries(variables.map(({ key, value }) => [key, value])), 'The variables of a run');
    const { tty, detached } = inputOf(input);
    if (tty) await requireTerminals(ctx);
    const place =
      input.instance_id == null
        ? await besideInstances(ctx, application, input)
        : await withinInstance(ctx, application, input.instance_id, input);
    const id = mintId(Run.idPrefix);
    return Run.insert(ctx, {
      id,
      created_at: timeOfId(id).toISOString(),
      application_id: application.id,
      ...place,
      command: input.command,
      timeout_seconds: input.timeout_seconds ?? limits.runSecondsDefault,
      env: variables.map(({ key }) => key).sort(),
      variables: sealVariables(ctx.secrets, id, variables),
      tty,
      detached,
      trigger_type: trigger.type,
      trigger_id: trigger.id,
    });
  }

  /** What a client can attach to. */
  async attachment(ctx: Context): Promise<RunAttachment> {
    const { id: run_id, status, tty, detached } = this;
    return { run_id, protocol: RUN_PROTOCOL, status, tty, detached, has_writer: await hasWriter(ctx.sql, run_id) };
  }

  /** Its job stops the processes; a run that has not begun is canceled at once. @throws invalid_state */
  async cancel(ctx: Context): Promise<this> {
    this.requireStatus(['queued', 'starting', 'running']);
    const who = ctx.identity?.user?.name ?? ctx.identity?.name;
    const now = new Date().toISOString();
    const asked = { cancel_requested_at: now, status_reason: `Canceled by ${who}.` };
    return this.status === 'queued'
      ? this.move(ctx, 'canceled', { ...asked, finished_at: now, variables: null })
      : this.update(ctx, asked);
  }
}

type Place = Pick<
  Run,
  'preview_id' | 'instance_id' | 'release_id' | 'deployment_id' | 'process_type' | 'application_type'
>;

async function besideInstances(ctx: Context, application: Application, input: CreateRunInput): Promise<Place> {
  const preview = await previewOf(ctx, application, input.preview_id ?? null);
  const release = await requireRelease(sessionOf(ctx), application, preview, input.process_type ?? null);
  const wanted = input.application_type ?? release.application_type;
  const application_type = await requireType(ctx, wanted, application.region);
  return { ...placeOf(release), preview_id: preview?.id ?? null, instance_id: null, application_type };
}

const CHOSEN_BY_INSTANCE = ['preview_id', 'process_type', 'application_type'] as const;
const ENTERED_STATUSES = ['starting', 'running'];

/** @throws validation_failed for what a command within an instance has from it */
function requireOwnPlace(input: CreateRunInput): void {
  const given = CHOSEN_BY_INSTANCE.filter((field) => input[field] != null);
  const detail = 'cannot be given with instance_id: the command has that of the instance';
  if (given.length) throw validationFailed(given.map((field) => ({ field, code: 'depends_on', detail })));
}

async function withinInstance(
  ctx: Context,
  application: Application,
  id: string,
  input: CreateRunInput,
): Promise<Place> {
  const field = 'instance_id';
  const instance = await Instance.referenced(ctx, id, field);
  if (instance.application_id !== application.id)
    throw problem('reference_not_found', `${field} names no instance of this application.`, { field });
  requireOwnPlace(input);
  if ((await podOfInstance(ctx.sql, id)) !== null) requireClient(input);
  else await requireEntering(ctx);
  if (!ENTERED_STATUSES.includes(instance.status))
    throw problem('invalid_state', `The instance is ${instance.status}: a command enters one that runs.`, {
      resource_status: instance.status,
      allowed_statuses: ENTERED_STATUSES,
    });
  const release = await releaseOfInstance(sessionOf(ctx), instance);
  const { preview_id } = instance;
  return { ...placeOf(release), preview_id, instance_id: id, application_type: release.application_type };
}

function placeOf({
  id,
  deployment_id,
  process_type,
}: ReleaseOfRun): Pick<Place, 'release_id' | 'deployment_id' | 'process_type'> {
  return { release_id: id, deployment_id, process_type };
}

/** @throws reference_not_found for a preview of another application */
async function previewOf(ctx: Context, application: Application, id: string | null): Promise<Preview | null> {
  if (id === null) return null;
  const field = 'preview_id';
  const preview = await Preview.referenced(ctx, id, field);
  if (preview.application_id === application.id) return preview;
  throw problem('reference_not_found', `${field} names no preview of this application.`, { field });
}

/** @throws validation_failed for a terminal that nobody could use */
function inputOf({ tty, detached }: CreateRunInput): { tty: boolean; detached: boolean } {
  if (tty && detached)
    throw validationFailed([
      { field: 'detached', code: 'depends_on', detail: 'cannot be true with tty: a terminal is for somebody to use' },
    ]);
  return { tty: tty ?? false, detached: detached ?? !tty };
}

/** @throws engine_unavailable */
async function requireTerminals({ catalogs, config }: Context): Promise<void> {
  // Those of a cluster are made by its nodes.
  if (config.workloads === 'kubernetes') return;
  if ((await catalogs.facts()).programs.script) return;
  throw problem('engine_unavailable', 'This installation has no terminals: its host lacks script of util-linux.');
}

/** @throws validation_failed for what a command in an instance of a cluster does not have */
function requireClient(input: CreateRunInput): void {
  const code = 'depends_on';
  const { detached } = inputOf(input);
  if (detached)
    throw validationFailed([
      {
        field: 'detached',
        code,
        detail: 'must be false for an instance of a cluster: the command ends with its client',
      },
    ]);
  // They would be in the address of the request to the cluster.
  if (input.env?.length)
    throw validationFailed([{ field: 'env', code, detail: 'cannot be given for an instance of a cluster' }]);
}

/** @throws engine_unavailable */
async function requireEntering({ catalogs }: Context): Promise<void> {
  if ((await catalogs.facts()).programs.perl) return;
  throw problem('engine_unavailable', 'Commands cannot enter instances here: the host lacks perl.');
}

/** @throws env_key_reserved */
function requireUnreserved(variables: readonly RunVariableInput[]): void {
  const keys = variables.map(({ key }) => key).filter(isReservedVariable);
  if (keys.length) throw problem('env_key_reserved', `Reserved for the platform: ${keys.join(', ')}.`, { keys });
}

/** Runs without those of previews. */
function ownRuns(ctx: Context): Source {
  return {
    from: 'runs',
    where: 'project_id = :project_id and preview_id is null and deleted_at is null',
    columns: columnsOf(tableOf(ctx, 'runs')),
    values: { project_id: ctx.project?.id },
  };
}
