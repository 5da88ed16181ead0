// Plans and applies the file of a project (docs/decisions/0253). Both run the same steps in one transaction: a plan
// rolls it back, and an apply commits it if the steps are those of the plan.
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/canonical_json';
import type { Context, ProjectAccess } from '../../core/context';
import type { DestroyingCall } from '../../core/destroying_call';
import { problem, validationFailed } from '../../core/errors';
import { limits } from '../../core/limits';
import type { Arguments } from '../admission';
import { requestApproval } from '../approvals';
import { rehearse } from '../dry_run';
import type { NestedCalls, NestedOperation } from '../nested';
import { readStack, type Fields } from './document';
import { writeStack } from './export';
import { STACK_KINDS } from './kinds';
import { openPlanToken, sealPlanToken, type PlanToken } from './plan_token';
import { probeStack, reconcileProject } from './reconcile';
import type { StackChange, StackReader, StackRun } from './run';

/** What a stack needs of the models. */
export interface StackModels extends StackReader {
  currency: string;
  /** Waits for other applies of the project, and holds all that exists of a kind against changes. */
  lock(ctx: Context): Promise<void>;
  /** Whether a destroying call of this caller needs an approval. */
  requiresApproval(ctx: Context): Promise<boolean>;
  /** Whether so many destroying calls would pause the key of the caller. */
  pausesKey(ctx: Context, calls: number): Promise<boolean>;
}

interface PlanInput {
  document: string;
  environment?: string | null;
  prune?: boolean;
}

interface ApplyInput {
  document: string;
  plan_token: string;
  confirm?: string[];
}

/** What exists, by place: changes when it does. */
type World = Map<string, string>;

/** The operations of a stack. */
export function stackOperations(models: StackModels): Record<string, NestedOperation> {
  return {
    exportStack: {
      prepare: () => Promise.resolve(null),
      resolve: ({ values }, ctx, calls) => writeStack(ctx, models, fieldsOf(calls), values === true),
    },
    planStack: {
      prepare: ({ input }, ctx, calls) => plan(ctx, models, calls, input as PlanInput),
      resolve: (_, ctx) => Promise.resolve(ctx.probed),
    },
    applyStack: {
      prepare: (args, ctx, calls) => prepareApply(ctx, models, calls, args),
      async resolve({ input }, ctx, calls) {
        const prepared = ctx.probed as Prepared;
        if (prepared.approved) await calls.operation('applyStack').desk?.spend(ctx, prepared.approved);
        const changes = await apply(ctx, models, calls, input as ApplyInput, prepared);
        const { id, name } = ctx.project as { id: string; name: string };
        ctx.activity.resource = { type: 'project', id, name, project_id: id };
        ctx.activity.changed_fields = [];
        return { changes };
      },
    },
  };
}

async function plan(ctx: Context, models: StackModels, calls: NestedCalls, input: PlanInput): Promise<unknown> {
  const given = { prune: input.prune ?? false, environment: input.environment ?? null };
  const run = startRun(ctx, models, calls, { ...given, document: input.document }, true);
  const probed = await probeStack({ ...run, changes: [], refusals: [], missing_secrets: [] });
  const planned = await rehearse(ctx, async (inner) => {
    const tried: StackRun = { ...run, ctx: inner, probed, changes: [], refusals: [], missing_secrets: [] };
    const [world, before] = [await worldOf(tried, models), await models.monthlyPrice(inner)];
    await reconcileProject(tried);
    return { tried, world, before, after: await models.monthlyPrice(inner) };
  });
  const { changes, refusals, missing_secrets } = planned.tried;
  const expires = Date.now() + limits.approvalWaitHours * 3_600_000;
  const token: PlanToken = {
    ...{ ...given, document: digestOf(input.document), changes: digestOfChanges(changes), expires },
    world: Object.fromEntries(seenOf(run, planned.world)),
    confirm: confirmedPlaces(changes),
    destroys: changes.filter(({ danger }) => danger).map(describe),
  };
  return {
    ...{ changes, refusals, missing_secrets, confirm: token.confirm.map((place) => shortestName(token, place)) },
    monthly_price: { currency: models.currency, before: planned.before, after: planned.after },
    requires_approval: token.destroys.length > 0 && (await models.requiresApproval(ctx)),
    pauses_key: token.destroys.length > 0 && (await models.pausesKey(ctx, token.destroys.length)),
    plan_token: refusals.length ? null : sealPlanToken(ctx, token),
    expires_at: new Date(expires).toISOString(),
  };
}

interface Prepared {
  token: PlanToken;
  probed: ReadonlyMap<string, unknown>;
  /** The approval that the call spends. */
  approved: string | null;
}

async function prepareApply(ctx: Context, models: StackModels, calls: NestedCalls, args: Arguments): Promise<Prepared> {
  const input = args.input as ApplyInput;
  const token = openPlanToken(ctx, input.plan_token);
  if (token.document !== digestOf(input.document))
    throw problem('plan_outdated', 'The file is not that of the plan. Plan it again.', { moved: [] });
  requireConfirmed(token, input.confirm ?? []);
  const run = startRun(ctx, models, calls, { ...token, document: input.document }, false);
  await requireSameWorld(ctx, models, run, token);
  const probed = await probeStack(run);
  const prepared = { token, probed, approved: null };
  const rehearsal = (inner: Context): Promise<unknown> => apply(inner, models, calls, input, prepared);
  return { ...prepared, approved: await approval(ctx, calls, token, rehearsal) };
}

/** Each call that destroys counts for the brake of keys; one approval is for all of them. @throws approval_required */
async function approval(
  ctx: Context,
  calls: NestedCalls,
  { destroys, document, world, changes }: PlanToken,
  rehearsal: (inner: Context) => Promise<unknown>,
): Promise<string | null> {
  const { desk } = calls.operation('applyStack');
  if (!desk || ctx.dry_run || !destroys.length) return null;
  const call: DestroyingCall = {
    ...{ operation: 'applyStack', summary: 'Apply the plan of a file' },
    input: { destroys, digest: digestOf(canonicalJson([document, world, changes])) },
  };
  let approved: string | null = null;
  for (let counted = 0; counted < destroys.length; counted += 1) {
    const verdict = await desk.judge(ctx, call);
    if (verdict.needs === 'approval') await requestApproval(ctx, desk, call, rehearsal);
    if (verdict.needs === 'spending') approved = verdict.approved;
  }
  return approved;
}

/** @throws plan_outdated, stack_refused */
async function apply(
  ctx: Context,
  models: StackModels,
  calls: NestedCalls,
  { document }: ApplyInput,
  { token, probed }: Pick<Prepared, 'token' | 'probed'>,
): Promise<StackChange[]> {
  await models.lock(ctx);
  const run = { ...startRun(ctx, models, calls, { ...token, document }, false), probed };
  await requireSameWorld(ctx, models, run, token);
  await reconcileProject(run);
  if (digestOfChanges(run.changes) === token.changes) return run.changes;
  throw problem('plan_outdated', 'The changes would be others than those of the plan. Plan again.', { moved: [] });
}

/** @throws plan_outdated with what was changed since */
async function requireSameWorld(ctx: Context, models: StackModels, run: StackRun, token: PlanToken): Promise<void> {
  const seen = new Map(seenOf(run, await worldOf({ ...run, ctx }, models)));
  const places = new Set([...seen.keys(), ...Object.keys(token.world)]);
  const moved = [...places].filter((place) => seen.get(place) !== token.world[place]).sort();
  if (!moved.length) return;
  const names = moved.slice(0, MOVED_MAX);
  throw problem('plan_outdated', `Changed since the plan: ${names.join(', ')}. Plan again.`, { moved: names });
}

const MOVED_MAX = 50;

function startRun(
  ctx: Context,
  reader: StackReader,
  calls: NestedCalls,
  { document, environment, prune }: Pick<PlanToken, 'document' | 'environment' | 'prune'>,
  isPlan: boolean,
): StackRun {
  const project = ctx.project as ProjectAccess;
  const entries = readStack(document, { environment, project }, fieldsOf(calls));
  const found = { changes: [], refusals: [], missing_secrets: [], names: new Map() };
  return { ctx, entries, prune, calls, reader, isPlan, probed: new Map(), ...found };
}

const fieldsOf = (calls: NestedCalls): Fields => ({ get: (name) => calls.operation(name).field });

async function worldOf({ ctx }: StackRun, models: StackModels): Promise<World> {
  const applications = await models.rows(ctx, 'application');
  const names = new Map(applications.map(({ id, name }) => [id, name as string]));
  const world: World = new Map();
  for (const { type, key, isChild } of STACK_KINDS) {
    if (key === null) continue;
    for (const row of type === 'application' ? applications : await models.rows(ctx, type)) {
      // A domain may move to another application, so it is not named after its own.
      const parent = isChild && type !== 'domain' ? names.get(row.application_id as string) : null;
      const name = [parent, row[key] as string].filter(Boolean).join('/');
      world.set(`${type} ${name}`, digestOf(`${row.id} ${row.version} ${row.application_id ?? ''}`).slice(0, 12));
    }
  }
  return world;
}

/** What a plan depends on: all that exists where it prunes, else what the file names and what that belongs to. */
function seenOf({ entries, prune }: StackRun, world: World): [string, string][] {
  if (prune) return [...world];
  const places = new Set(
    entries.flatMap(({ kind, parent, key, values }) => {
      const own = `${kind.type} ${[kind.type === 'domain' ? null : parent, key].filter(Boolean).join('/')}`;
      const target = values.application ?? values.database;
      return [own, `application ${parent}`, `application ${String(target)}`, `database ${String(target)}`];
    }),
  );
  return [...places].flatMap((place): [string, string][] => {
    const found = world.get(place);
    return found === undefined ? [] : [[place, found]];
  });
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Ids of what is created differ each time. */
function digestOfChanges(changes: readonly StackChange[]): string {
  return digestOf(canonicalJson(changes.map(({ resource_id: _, ...change }) => change)));
}

const describe = ({ operation_id, name }: StackChange): string => `${operation_id} ${name}`;

/** `database:main` */
function confirmedPlaces(changes: readonly StackChange[]): string[] {
  return changes.filter(({ danger }) => danger === 'destroys_data').map(({ type, name }) => `${type}:${name}`);
}

const nameOf = (place: string): string => place.slice(place.indexOf(':') + 1);

/** The bare name, where it names one thing alone. */
function shortestName({ confirm }: PlanToken, place: string): string {
  const isShared = confirm.some((other) => other !== place && nameOf(other) === nameOf(place));
  return isShared ? place : nameOf(place);
}

/** @throws validation_failed */
function requireConfirmed(token: PlanToken, confirmed: readonly string[]): void {
  const missing = token.confirm.filter(
    (place) => !confirmed.includes(place) && !confirmed.includes(shortestName(token, place)),
  );
  if (!missing.length) return;
  const names = missing.map((place) => shortestName(token, place)).join(', ');
  const detail = `must name what is deleted with its data: ${names}`;
  throw validationFailed([{ field: 'confirm', code: 'required', detail }]);
}
