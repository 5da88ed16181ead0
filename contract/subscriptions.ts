// Subscriptions of GraphQL, made from the queries that are marked @live: `listXLogs` becomes `followXLogs`, whose
// events are single rows. A row has its position, and a subscription resumes after it
// (docs/decisions/0017-subscriptions-over-sse.md).
import { mapSchema, MapperKind } from '@graphql-tools/utils';
import {
  getNullableType,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  isListType,
  isObjectType,
  type GraphQLArgumentConfig,
  type GraphQLFieldConfig,
} from 'graphql';
import type { Context } from '../core/context';
import { hashFilters } from '../core/cursor';
import { admit, projectPlaceOf, readmission, type RootOperation } from './admission';
import type { ProjectPlace } from './guard';
import { combineReaders, type CombinedPart } from './combined_reader';
import { listIdentity, startFollowing, type FollowOptions, type LiveEvent, type LiveReader } from './live';

/** Several lists of one project in one subscription. A resolver file exports `combined: { followX: combination }`. */
export interface Combination {
  description: string;
  /** Name of the union of the rows. */
  event: string;
  /** Argument that names the project. */
  project: string;
  /** Overrides of argument descriptions that do not fit a subscription. */
  argumentDescriptions: Record<string, string>;
  parts: {
    list: string;
    /** Name of the time of a row. */
    time: string;
    /** Arguments of the list that have another name here. */
    renamed: Record<string, string>;
  }[];
}

interface Followed {
  operation: RootOperation;
  reader: LiveReader;
  config: GraphQLFieldConfig<unknown, Context>;
  row: GraphQLObjectType;
}

type SubscriptionConfig = GraphQLFieldConfig<unknown, Context>;

/** The schema with a root of subscriptions, and with the field `position` of the rows that can be followed. */
export function withSubscriptions(
  given: GraphQLSchema,
  operations: ReadonlyMap<string, RootOperation>,
  live: ReadonlyMap<string, LiveReader>,
  combined: ReadonlyMap<string, Combination>,
): GraphQLSchema {
  if (!live.size) return given;
  const rows = new Set([...live.keys()].map((name) => rowOf(given, name).name));
  const schema = mapSchema(given, {
    [MapperKind.OBJECT_TYPE]: (type) => (rows.has(type.name) ? withPosition(type) : undefined),
  });
  const followed = new Map([...live].map(([name, reader]) => [name, followedOf(schema, operations, name, reader)]));
  const fields = [
    ...[...followed].map(([name, one]) => [name.replace(/^list/, 'follow'), subscriptionOf(one)]),
    ...[...combined].map(([name, one]) => [name, combinedSubscription(name, one, followed)]),
  ] as [string, SubscriptionConfig][];
  return new GraphQLSchema({
    ...schema.toConfig(),
    subscription: new GraphQLObjectType({ name: 'Subscription', fields: Object.fromEntries(fields) }),
  });
}

function withPosition(type: GraphQLObjectType): GraphQLObjectType {
  const config = type.toConfig();
  const description =
    'Position of the row in the subscription that sent it, for its argument `after`. `null` in lists.';
  return new GraphQLObjectType({
    ...config,
    fields: { ...config.fields, position: { type: GraphQLString, description } },
  });
}

function followedOf(
  schema: GraphQLSchema,
  operations: ReadonlyMap<string, RootOperation>,
  name: string,
  reader: LiveReader,
): Followed {
  const config = schema.getQueryType()?.toConfig().fields[name] as SubscriptionConfig;
  return { operation: operations.get(name) as RootOperation, reader, config, row: rowOf(schema, name) };
}

function rowOf(schema: GraphQLSchema, name: string): GraphQLObjectType {
  const envelope = getNullableType(schema.getQueryType()?.getFields()[name]?.type);
  const data = isObjectType(envelope) ? getNullableType(envelope.getFields().data?.type) : null;
  const row = isListType(data) ? getNullableType(data.ofType) : null;
  if (!isObjectType(row)) throw new Error(`schema: ${name}: @live needs a list of objects`);
  return row;
}

type ArgumentConfigs = Record<string, GraphQLArgumentConfig>;

/** Arguments that select a page; a subscription has no use for them. */
const PAGE_ARGUMENTS = new Set(['limit', 'cursor', 'sort', 'order', 'until']);

const AFTER: GraphQLArgumentConfig = {
  type: GraphQLString,
  description: [
    '`position` of the last row that the client received. The stream resumes after it.',
    'Without it, the stream begins with the newest rows.',
  ].join(' '),
};

function filtersOf({ config }: Followed): ArgumentConfigs {
  return Object.fromEntries(Object.entries(config.args ?? {}).filter(([name]) => !PAGE_ARGUMENTS.has(name)));
}

interface FollowArguments extends Record<string, unknown> {
  after?: string | null;
}

function subscriptionOf(followed: Followed): SubscriptionConfig {
  const { operation, reader, row } = followed;
  const { field } = operation;
  return {
    type: new GraphQLNonNull(row),
    args: { ...filtersOf(followed), after: AFTER },
    description: `Follows \`${field.name}\`: the newest rows, then each one as it comes. Sent over server-sent events.`,
    resolve: (event) => event,
    async subscribe(_, { after = null, ...given }: FollowArguments, ctx) {
      const follower = await admitFollower(ctx, operation, given, projectPlaceOf(field, given));
      const { args } = follower;
      return rowsFrom(ctx, [follower], { reader, args, list: listIdentity(field, args), after });
    },
  };
}

/** Every part admits the caller by the rules of its list: each row is one that the caller may list. */
function combinedSubscription(
  name: string,
  combination: Combination,
  lists: ReadonlyMap<string, Followed>,
): SubscriptionConfig {
  const parts = combination.parts.map((part) => ({ ...part, ...(lists.get(part.list) as Followed) }));
  const args = argumentsOf(combination, parts);
  const required = Object.keys(args).filter((argument) => args[argument]?.type instanceof GraphQLNonNull);
  return {
    type: new GraphQLNonNull(new GraphQLUnionType({ name: combination.event, types: parts.map(({ row }) => row) })),
    args: { ...args, after: AFTER },
    description: combination.description,
    resolve: (event) => event,
    async subscribe(_, { after = null, ...given }: FollowArguments, ctx) {
      const followers: (Follower & CombinedPart)[] = [];
      for (const { operation, reader, row, time, ...part } of parts) {
        const own = givenTo(part, given);
        const follower = await admitFollower(ctx, operation, own, { projectId: given[combination.project] as string });
        followers.push({ ...follower, reader, time, type: row.name });
      }
      const named = required.map((argument) => [argument, given[argument]]);
      const list = hashFilters({ ...Object.fromEntries(named), list: name });
      return rowsFrom(ctx, followers, { reader: combineReaders(followers), args: {}, list, after });
    },
  };
}

type Renaming = Pick<Combination['parts'][number], 'renamed'> & Pick<Followed, 'config'>;

function argumentsOf({ argumentDescriptions }: Combination, parts: (Renaming & Followed)[]): ArgumentConfigs {
  const args = Object.fromEntries(
    parts.flatMap((part) =>
      Object.entries(filtersOf(part)).map(([name, config]) => [part.renamed[name] ?? name, config] as const),
    ),
  );
  for (const [name, description] of Object.entries(argumentDescriptions))
    args[name] = { ...(args[name] as GraphQLArgumentConfig), description, astNode: undefined };
  return args;
}

/** The arguments of one list, under the names that the list uses. */
function givenTo({ config, renamed }: Renaming, given: Record<string, unknown>): Record<string, unknown> {
  const own = Object.keys(config.args ?? {}).map((name) => [name, given[renamed[name] ?? name]]);
  return Object.fromEntries(own.filter(([, value]) => value !== undefined));
}

/** A caller that has been admitted to one list. */
interface Follower {
  ctx: Context;
  args: Record<string, unknown>;
  readmitToList(): Promise<void>;
}

async function admitFollower(
  ctx: Context,
  operation: RootOperation,
  given: Record<string, unknown>,
  place: ProjectPlace,
): Promise<Follower> {
  const inner: Context = { ...ctx };
  const args = await admit(inner, operation, { ...place, readArguments: async () => given });
  return { ctx: inner, args, readmitToList: readmission(inner, operation) };
}

async function rowsFrom(
  ctx: Context,
  followers: readonly Follower[],
  following: Omit<FollowOptions, 'ctx' | 'signal'>,
): Promise<AsyncGenerator<object, void>> {
  const inner = (followers[0] as Follower).ctx;
  // For the log of refusals; the identity is for relations of the rows.
  ctx.project = inner.project;
  ctx.readmit = inner.readmit = async () => {
    for (const { readmitToList } of followers) await readmitToList();
    ctx.identity = inner.identity;
  };
  return positioned(await startFollowing({ ...following, ctx: inner, signal: ctx.signal }));
}

async function* positioned(batches: AsyncGenerator<LiveEvent[], void>): AsyncGenerator<object, void> {
  for await (const events of batches) for (const { id, data } of events) yield { ...data, position: id };
}
