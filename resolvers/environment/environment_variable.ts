import type { Revert } from '../../contract/revert';
import type { ExpectedRow, RowChange, UndoCall } from '../../core/undo';
import { Application } from '../../models/applications/application';
import { EnvironmentVariable } from '../../models/environment/environment_variable';
import { setVariables } from '../../models/environment/environment_variable/batch';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listEnvironmentVariables: async (_, { id, ...args }, ctx) => {
      const application = await Application.get(ctx, id);
      return page(EnvironmentVariable, ctx, { ...args, sort: args.sort ?? 'key' }, { application_id: application.id });
    },
  },
  Mutation: {
    setEnvironmentVariable: async (_, { id, key, input }, ctx) =>
      EnvironmentVariable.put(ctx, await Application.hold(ctx, id), key, input),
    setEnvironmentVariables: async (_, { id, input }, ctx) =>
      setVariables(ctx, await Application.held(ctx, id), input.variables),
    deleteEnvironmentVariable: async (_, { id, key }, ctx) => {
      await (await EnvironmentVariable.ofKey(ctx, await Application.hold(ctx, id), key)).destroy(ctx);
      return true;
    },
  },
  EnvironmentVariable: {
    value: (variable, _, ctx) => variable.reveal(ctx),
  },
};

export const revert: Record<string, Revert> = {
  setEnvironmentVariable: ({ args, changes }) => variablesBack(args.id as string, changes),
  setEnvironmentVariables: ({ args, changes }) => variablesBack(args.id as string, changes),
  deleteEnvironmentVariable: ({ args, changes }) => variablesBack(args.id as string, changes),
};

function variablesBack(id: string, changes: readonly RowChange[]): ReturnType<Revert> {
  const variables = changes.filter((one) => one.kind === 'environment_variable' && !isSameVariable(one));
  if (!variables.length) return 'unchanged';
  return {
    calls: variables.map((one) => variableBack(id, one)),
    holds: [{ kind: 'application', id }],
    expected: variables.map(expectedVariable),
  };
}

function isSameVariable({ before, after }: RowChange): boolean {
  return before?.value === after?.value && before?.available_at === after?.available_at;
}

function variableBack(id: string, { before, after }: RowChange): UndoCall {
  if (!before) return { operation: 'deleteEnvironmentVariable', args: { id, key: after?.key } };
  const { key, value, available_at } = before;
  return { operation: 'setEnvironmentVariable', args: { id, key, input: { value, available_at } } };
}

/** Deleted and set again, a variable has another id. */
function expectedVariable({ kind, before, after }: RowChange): ExpectedRow {
  const { application_id, key } = (after ?? before) as { application_id: string; key: string };
  const by = { application_id, key };
  if (!after) return { kind, by, values: null };
  const { value, available_at } = after;
  return { kind, by, values: { value, available_at }, secrets: { names: ['value'], readable: true } };
}
