// The one way into the core. REST, GraphQL and subscriptions admit a caller and execute an operation by these two
// functions, so no face can forget a check or change their order (docs/decisions/rules.md §6). A face itself only finds
// out which operation is called and who calls.
import type { Context } from '../core/context';
import type { ApprovalDesk } from '../core/destroying_call';
import { destroyingCallOf, requestApproval } from './approvals';
import type { FieldValidator } from './field_validator';
import { readDryRun, rehearse } from './dry_run';
import { requireAllowed, requireRightsOfNested, requireStillAllowed, type ProjectPlace } from './guard';
import type { RootField } from './operations';
import { requireDestroyingInputs } from './destroying';
import { requireRunningInputs } from './running_inputs';

export type Arguments = Record<string, unknown>;

/**
 * A question to the outside world that a mutation needs answered (docs/decisions/rules.md §2). It runs after validation
 * and before the transaction; the resolver finds the result in `ctx.probed`. A resolver file exports `prepare: {
 * verifyX: hook }`.
 */
export type Prepare = (args: Arguments, ctx: Context) => Promise<unknown>;

/**
 * Waits, after the commit and for a bounded time, until the loop has applied a mutation (docs/decisions/rules.md §2).
 * It does not change the response. A resolver file exports `confirm: { rotateX: hook }`.
 */
export type Confirm = (args: Arguments, ctx: Context) => Promise<void>;

/** A root field with all that a call of it needs. */
export interface RootOperation {
  field: RootField;
  validate: FieldValidator;
  prepare?: Prepare;
  confirm?: Confirm;
  /** Of mutations that keys may call. */
  desk?: ApprovalDesk;
}

interface CallRequest extends ProjectPlace {
  /** The arguments as they were sent. Called once the caller is admitted, since a stranger's body is not read. */
  readArguments(): Promise<Arguments>;
}

/**
 * Checks the caller, then the request. Sets the context's project.
 * @returns the arguments in their normal form
 * @throws what guard.ts, `readArguments` and the validator throw, in this order
 */
export async function admit(
  ctx: Context,
  { field, validate }: RootOperation,
  request: CallRequest,
): Promise<Arguments> {
  await requireAllowed(ctx, field, request);
  ctx.dry_run = field.kind === 'mutation' && readDryRun(ctx, field);
  return requireInputs(ctx, field, validate(await request.readArguments()));
}

/**
 * The same for an operation that another one runs in its transaction: it needs all rights of its own, but is no further
 * call.
 */
export async function admitNested(
  ctx: Context,
  { field, validate }: RootOperation,
  args: Arguments,
): Promise<Arguments> {
  await requireRightsOfNested(ctx, field);
  return requireInputs(ctx, field, validate(args));
}

function requireInputs({ identity }: Context, field: RootField, args: Arguments): Arguments {
  if (!field.body || !identity) return args;
  requireRunningInputs(identity, field.runs, args[field.body.argument]);
  requireDestroyingInputs(identity, field.destroyingInputs, args[field.body.argument]);
  return args;
}

/**
 * Checks that the caller of an admitted call is still authorised. Long-lived calls (subscriptions, waits) run it
 * repeatedly, since keys, sessions, memberships and accounts can end meanwhile. It renews the context's identity and
 * project.
 */
export function readmission(ctx: Context, { field }: RootOperation): () => Promise<void> {
  const projectId = ctx.project?.id;
  return () => requireStillAllowed(ctx, field, projectId);
}

/**
 * Runs an admitted operation: a query at once, a mutation between its hooks and in one transaction, which a dry run
 * rolls back. A call that destroys may need an approval first.
 * @param run replays, or finds the resource and checks If-Match, references, state, uniqueness and quotas
 * @param replay the stored response of a repeated request, null for a new one. Runs before `prepare`, which may have
 * side effects
 */
export async function execute<Result>(
  ctx: Context,
  { field, prepare, confirm, desk }: RootOperation,
  args: Arguments,
  run: (inner: Context) => Promise<Result>,
  replay: () => Promise<Result | null> = () => Promise.resolve(null),
): Promise<Result> {
  if (field.kind === 'query') return run(ctx);
  const destroying = desk && !ctx.dry_run ? destroyingCallOf(field, args) : null;
  const repeated = prepare || destroying ? await replay() : null;
  if (repeated) return repeated;
  const verdict = destroying && (await desk?.judge(ctx, destroying));
  ctx.probed = await prepare?.(args, ctx);
  if (ctx.dry_run) return rehearse(ctx, run);
  if (desk && destroying && verdict?.needs === 'approval') return requestApproval(ctx, desk, destroying, run);
  ctx.approved = verdict?.needs === 'spending' ? verdict.approved : null;
  const result = await ctx.transact(run);
  await confirm?.(args, ctx);
  return result;
}

/** Project and resource named by GraphQL arguments. Queries across many projects need not name a project per field. */
export function projectPlaceOf({ projectArgument }: RootField, args: Arguments): ProjectPlace {
  const projectId = projectArgument ? (args[projectArgument] as string | undefined) : undefined;
  return { projectId, resourceId: typeof args.id === 'string' ? args.id : undefined };
}
