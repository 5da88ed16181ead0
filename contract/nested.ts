// Operations that another operation runs in its transaction, with the rights of the same caller: what a revert and a
// stack do.
import type { GraphQLFieldResolver, GraphQLInputObjectType } from 'graphql';
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import type { RevertObstacle, Undo, UndoCall } from '../core/undo';
import { destroyingCallOf } from './approvals';
import { admitNested, type Arguments, type RootOperation } from './admission';
import type { Revert } from './revert';

type Resolve = GraphQLFieldResolver<unknown, Context, Record<string, unknown>>;

/** An operation that runs others. A resolver file exports `nested: { revertX: … }`. */
export interface NestedOperation {
  prepare(args: Arguments, ctx: Context, calls: NestedCalls): Promise<unknown>;
  resolve(args: Arguments, ctx: Context, calls: NestedCalls): Promise<unknown>;
}

export interface NestedCalls {
  /** Admits the caller to all of them and asks the outside world, before the transaction. */
  prepare(ctx: Context, calls: readonly UndoCall[]): Promise<unknown[]>;
  /** Runs them in the open transaction. Returns what takes all of them back, or why nothing does. */
  run(ctx: Context, calls: readonly UndoCall[], probed: readonly unknown[]): Promise<Undo | RevertObstacle>;
  /** Asks the outside world what one needs to know, before the transaction; undefined where it needs nothing. */
  probe(ctx: Context, call: UndoCall): Promise<unknown>;
  /** Runs one in the open transaction, with an activity entry of its own. */
  perform(ctx: Context, call: UndoCall, probed: unknown): Promise<unknown>;
  /** The operation itself. */
  operation(name: string): RootOperation;
}

interface Parts {
  operations: ReadonlyMap<string, RootOperation>;
  /** Resolvers of the root fields, as the resolver files have them. */
  resolvers: ReadonlyMap<string, Resolve>;
  reverts: ReadonlyMap<string, Revert>;
}

export function nestedCalls({ operations, resolvers, reverts }: Parts): NestedCalls {
  const operationOf = (name: string): RootOperation => {
    const found = operations.get(name);
    if (!found) throw new Error(`no operation ${name}`);
    return found;
  };
  const prepareOne = async (ctx: Context, { operation: name, args }: UndoCall): Promise<unknown> => {
    const operation = operationOf(name);
    const inner = nestedContext(ctx);
    const admitted = await admitNested(inner, operation, args);
    await requireNoApproval(inner, operation, admitted);
    return operation.prepare?.(admitted, inner);
  };
  const runOne = async (ctx: Context, call: UndoCall, probed: unknown): Promise<Undo | RevertObstacle> => {
    const operation = operationOf(call.operation);
    const inner = { ...nestedContext(ctx), probed };
    const args = await admitNested(inner, operation, call.args);
    Object.assign(inner.activity, { changes: [], revive: [...(call.revive ?? [])] });
    const resolve = resolvers.get(call.operation) as Resolve;
    await resolve(undefined, args, inner, undefined as never);
    const { changes } = inner.activity;
    if (!changes) return 'not_kept';
    const revert = reverts.get(call.operation);
    const done = { operation: call.operation, args, changes, inputOf: inputOf(operations) };
    return revert ? revert(done) : 'not_kept';
  };
  return {
    operation: operationOf,
    async probe(ctx, { operation: name, args }) {
      const operation = operationOf(name);
      if (!operation.prepare) return undefined;
      const inner = nestedContext(ctx);
      return operation.prepare(await admitNested(inner, operation, args), inner);
    },
    async perform(ctx, { operation: name, args }, probed) {
      const operation = operationOf(name);
      // What relations of an earlier call have read may be changed now. An approval is for all of them together.
      const inner = { ...nestedContext(ctx), probed, approved: null, loaders: new Map<unknown, unknown>() };
      const admitted = await admitNested(inner, operation, args);
      const resolve = operation.field.definition.resolve as Resolve;
      return resolve(undefined, admitted, inner, undefined as never);
    },
    async prepare(ctx, calls) {
      const probed: unknown[] = [];
      for (const call of calls) probed.push(await prepareOne(ctx, call));
      return probed;
    },
    async run(ctx, calls, probed) {
      const undone: (Undo | RevertObstacle)[] = [];
      for (const [index, call] of calls.entries()) undone.push(await runOne(ctx, call, probed[index]));
      return together(undone);
    },
  };
}

/** An approval is for a call as its caller makes it. The call counts for the brake. @throws not_revertible */
async function requireNoApproval(ctx: Context, { field, desk }: RootOperation, args: Arguments): Promise<void> {
  const call = desk && !ctx.dry_run ? destroyingCallOf(field, args) : null;
  const verdict = call && (await desk?.judge(ctx, call));
  if (!verdict || verdict.needs === 'nothing') return;
  throw problem('not_revertible', `This project requires an approval for ${call.operation}: make that call itself.`);
}

/** The input type of an operation by its name. */
export function inputOf(
  operations: ReadonlyMap<string, Pick<RootOperation, 'field'>>,
): (name: string) => GraphQLInputObjectType {
  return (name) => {
    const type = operations.get(name)?.field.body?.type;
    if (!type) throw new Error(`${name} has no input`);
    return type;
  };
}

/** The answer of an inner operation is not that of the request. */
function nestedContext(ctx: Context): Context {
  return { ...ctx, if_match: undefined, reply: { status: null, etag: null, headers: {} } };
}

/** The last call is taken back first. */
function together(undone: readonly (Undo | RevertObstacle)[]): Undo | RevertObstacle {
  const obstacle = undone.find((one) => typeof one === 'string' && one !== 'unchanged');
  if (obstacle) return obstacle;
  const undos = undone.filter((one) => typeof one !== 'string').reverse();
  if (!undos.length) return 'unchanged';
  const holds = new Map(undos.flatMap((one) => one.holds).map((one) => [`${one.kind} ${one.id}`, one]));
  return {
    calls: undos.flatMap(({ calls }) => calls),
    holds: [...holds.values()],
    expected: undos.flatMap(({ expected }) => expected),
  };
}
