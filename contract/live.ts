// Lists that can be followed: the same reader serves the stream of events on REST (rest/event_stream.ts) and the
// subscription of GraphQL, which is made here from the query that is marked @live.
import {
  getNullableType,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  isListType,
  isObjectType,
  type GraphQLFieldConfig,
} from 'graphql';
import type { Context, Topic } from '../core/context';
import { admit, readmission, projectPlaceOf, type RootOperation } from './admission';
import { limits } from '../core/limits';
import type { RootField } from './operations';

export interface LiveEvent {
  /** The position after this event: a client sends it to continue from there. */
  id: string;
  data: object;
}

/** How a list is followed. A resolver file exports `live: { listXLogs: reader }`. */
export interface LiveReader {
  topic(args: Record<string, unknown>): Topic;
  /** Events after a position, in order; null starts with the newest ones. @throws not_found, invalid_cursor */
  read(args: Record<string, unknown>, ctx: Context, after: string | null): Promise<LiveEvent[]>;
}

export interface FollowOptions {
  reader: LiveReader;
  args: Record<string, unknown>;
  ctx: Context;
  /** Where to begin, null = with the newest ones. */
  after: string | null;
  signal: AbortSignal;
}

/** At most: a waiter polls every two seconds, since notifications may be lost. */
const WAIT_MS = 5_000;

/**
 * Batches of events as they come. Before each reading, every two seconds, the caller is checked again: who lost the
 * key, the session or the project meanwhile sees nothing more. Ends when aborted.
 * @throws what the reader and `ctx.readmit` throw
 */
export async function* follow({ reader, args, ctx, after, signal }: FollowOptions): AsyncGenerator<LiveEvent[], void> {
  const topic = reader.topic(args);
  let position = after;
  let seen = 0;
  while (!signal.aborted) {
    await ctx.readmit?.();
    // What an earlier reading has found may be changed now.
    ctx.loaders.clear();
    const events = await reader.read(args, ctx, position);
    position = events[events.length - 1]?.id ?? position;
    if (events.length) yield events;
    // A full page: there is more to read at once.
    if (events.length >= limits.logPageSizeDefault) continue;
    seen = await ctx.notifications.wait(topic, seen, WAIT_MS, signal);
  }
}

/** Arguments that select a page; a subscription has no use for them. */
const PAGE_ARGUMENTS = new Set(['limit', 'cursor', 'sort', 'order', 'until']);

/**
 * The schema with a root of subscriptions: `listXLogs` marked @live becomes `followXLogs`, whose events are single
 * rows.
 */
export function withSubscriptions(
  schema: GraphQLSchema,
  operations: Iterable<RootOperation>,
  live: ReadonlyMap<string, LiveReader>,
): GraphQLSchema {
  const query = schema.getQueryType()?.toConfig().fields ?? {};
  const followed = [...operations]
    .filter(({ field }) => field.live)
    .map((operation) => {
      const { name } = operation.field;
      const config = query[name] as GraphQLFieldConfig<unknown, Context>;
      return [name.replace(/^list/, 'follow'), subscription(operation, config, live.get(name) as LiveReader)] as const;
    });
  if (!followed.length) return schema;
  return new GraphQLSchema({
    ...schema.toConfig(),
    subscription: new GraphQLObjectType({ name: 'Subscription', fields: Object.fromEntries(followed) }),
  });
}

function subscription(
  operation: RootOperation,
  config: GraphQLFieldConfig<unknown, Context>,
  reader: LiveReader,
): GraphQLFieldConfig<unknown, Context> {
  const { field } = operation;
  const args = Object.fromEntries(Object.entries(config.args ?? {}).filter(([name]) => !PAGE_ARGUMENTS.has(name)));
  return {
    type: new GraphQLNonNull(rowOf(field, config)),
    args,
    description: `Follows \`${field.name}\`: the newest rows, then each one as it comes. Sent over server-sent events.`,
    resolve: (row) => row,
    async subscribe(_, given: Record<string, unknown>, ctx) {
      const inner: Context = { ...ctx };
      const valid = await admit(inner, operation, {
        ...projectPlaceOf(field, given),
        readArguments: async () => given,
      });
      const readmit = readmission(inner, operation);
      // For the log of refusals; the identity is for relations of the rows.
      ctx.project = inner.project;
      ctx.readmit = inner.readmit = async () => {
        await readmit();
        ctx.identity = inner.identity;
      };
      const following = { reader, ctx: inner, args: valid, after: null, signal: ctx.signal };
      // What is wrong with the request shows before the stream begins.
      await reader.read(following.args, inner, null);
      return rowsFrom(following);
    },
  };
}

async function* rowsFrom(following: FollowOptions): AsyncGenerator<object, void> {
  for await (const events of follow(following)) for (const { data } of events) yield data;
}

// As the schema has it by now: the definition that the field was read from is older.
function rowOf(field: RootField, config: GraphQLFieldConfig<unknown, Context>): GraphQLObjectType {
  const envelope = getNullableType(config.type);
  const data = isObjectType(envelope) ? getNullableType(envelope.getFields().data?.type) : null;
  const row = isListType(data) ? getNullableType(data.ofType) : null;
  if (!isObjectType(row)) throw new Error(`schema: ${field.name}: @live needs a list of objects`);
  return row;
}
