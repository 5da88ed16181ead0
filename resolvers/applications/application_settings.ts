import { isDeepStrictEqual } from 'node:util';
import { isDocument, type Revert } from '../../contract/revert';
import { Application } from '../../models/applications/application';
import { changeSettings, settingsOf } from '../../models/applications/application_settings';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getApplicationSettings: async (_, { id }, ctx) => {
      const application = await Application.get(ctx, id);
      ctx.reply.etag = application.etag;
      return settingsOf(application);
    },
  },
  Mutation: {
    updateApplicationSettings: async (_, { id, input }, ctx) => {
      const application = await changeSettings(ctx, await Application.forUpdate(ctx, id), input);
      ctx.reply.etag = application.etag;
      return settingsOf(application);
    },
  },
};

type Values = Record<string, unknown>;

/** The settings that a request names, with their values from before it: defaults are values too. */
export const revert: Record<string, Revert> = {
  updateApplicationSettings: ({ operation, args, changes }) => {
    const change = changes.find(({ kind }) => kind === 'application');
    if (!change?.before || !change.after) return 'unchanged';
    const [before, after] = [change.before, change.after].map((row) => settingsOf(row as unknown as Application));
    const input = differences(args.input as Values, before as unknown as Values, after as unknown as Values);
    if (!Object.keys(input).length) return 'unchanged';
    const values = stored(input, change.after.settings as Values);
    return {
      calls: [{ operation, args: { id: args.id, input } }],
      holds: [],
      expected: [{ kind: change.kind, by: { id: change.id }, values }],
    };
  },
};

function differences(input: Values, before: Values, after: Values): Values {
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, value]): [string, unknown][] => {
      if (!isDocument(value)) return isDeepStrictEqual(before[name], after[name]) ? [] : [[name, before[name]]];
      const inner = differences(value, before[name] as Values, after[name] as Values);
      return Object.keys(inner).length ? [[name, inner]] : [];
    }),
  );
}

/** As in the row, where defaults are missing. */
function stored(input: Values, settings: Values | undefined, path = 'settings'): Values {
  return Object.entries(input).reduce<Values>((found, [name, value]) => {
    const at = `${path}.${name}`;
    const own = settings?.[name];
    return { ...found, ...(isDocument(value) ? stored(value, own as Values, at) : { [at]: own ?? null }) };
  }, {});
}
