// Builds the executable schema: every SDL file, every resolver file, and around each root field the one wrapper
// that authorises, validates, opens the transaction and writes the activity entry.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { getDirective, mapSchema, MapperKind, type IResolvers } from '@graphql-tools/utils';
import { mergeResolvers, mergeTypeDefs } from '@graphql-tools/merge';
import { defaultFieldResolver, type GraphQLFieldConfig, type GraphQLFieldResolver, type GraphQLSchema } from 'graphql';
import type { Context } from '../core/context';
import { refusalOf, requireScope } from '../contract/guard';
import { withSubscriptions, type LiveReader } from '../contract/live';
import { readOperations, type OperationTable, type RootField } from '../contract/operations';
import { isScopeRule, type ScopeRule } from '../core/scopes';
import { compileField, type FieldValidator } from '../contract/field_validator';
import { recordActivity } from '../models/activity';
import { Resource } from '../models/base/resource';
import { transitionalStates } from '../models/base/registry';

const load = createRequire(__filename);

type Resolve = GraphQLFieldResolver<unknown, Context, Record<string, unknown>>;

/**
 * A question to the outside world that a mutation needs answered (decision 2). It runs after validation and before the
 * transaction; the resolver finds the result in `ctx.probed`. A resolver file exports `prepare: { verifyX: hook }`.
 */
export type Prepare = (args: Record<string, unknown>, ctx: Context) => Promise<unknown>;

/**
 * Waits, after the commit and for a bounded time, until the loop has done what a mutation asked for (decision 2). It changes
 * nothing of the answer. A resolver file exports `confirm: { rotateX: hook }`.
 */
export type Confirm = (args: Record<string, unknown>, ctx: Context) => Promise<void>;

export interface Core {
  schema: GraphQLSchema;
  table: OperationTable;
  validators: Map<string, FieldValidator>;
  prepare: Map<string, Prepare>;
  confirm: Map<string, Confirm>;
  live: Map<string, LiveReader>;
  /** States that end by themselves, by GraphQL type. */
  transitional: ReadonlyMap<string, readonly string[]>;
}

/**
 * The core: schema, operation table, validators.
 * @throws Error with one clear line on any contradiction in the SDL or a missing resolver
 */
export function buildCore(): Core {
  const typeDefs = mergeTypeDefs(
    files('../schema', /\.graphql$/).map((file) => readFileSync(file, 'utf8')),
    { noLocation: true },
  );
  const modules = files('.', /^(?!index)\w+\.(ts|js)$/).map((file) => load(file) as ResolverModule);
  const resolvers = mergeResolvers(modules.map((module) => module.resolvers));
  const prepare = new Map(modules.flatMap((module) => Object.entries(module.prepare ?? {})));
  const confirm = new Map(modules.flatMap((module) => Object.entries(module.confirm ?? {})));
  const live = new Map(modules.flatMap((module) => Object.entries(module.live ?? {})));
  const raw = makeExecutableSchema({
    typeDefs,
    resolvers,
    resolverValidationOptions: { requireResolversToMatchSchema: 'error' },
  });
  const table = readOperations(raw);
  for (const { name, live: marked } of table.fields.values())
    if (marked !== live.has(name))
      throw new Error(`schema: ${name}: @live and the reader in resolvers/ belong together`);
  const validators = new Map([...table.fields.values()].map((field) => [field.name, compileField(raw, field)]));
  const schema = mapSchema(raw, {
    [MapperKind.ROOT_FIELD]: (config, name) => ({
      ...config,
      resolve: wrapRoot(
        config as FieldConfig,
        table.fields.get(name) as RootField,
        validators.get(name) as FieldValidator,
        { prepare: prepare.get(name), confirm: confirm.get(name) },
      ),
    }),
    [MapperKind.COMPOSITE_FIELD]: (config, name, type) => wrapRelation(raw, config as FieldConfig, `${type}.${name}`),
  });
  return {
    schema: withSubscriptions(schema, table.fields.values(), live, validators),
    table,
    validators,
    prepare,
    confirm,
    live,
    transitional: transitionalStates(),
  };
}

interface ResolverModule {
  resolvers: IResolvers;
  prepare?: Record<string, Prepare>;
  confirm?: Record<string, Confirm>;
  live?: Record<string, LiveReader>;
}

type FieldConfig = GraphQLFieldConfig<unknown, Context, Record<string, unknown>>;

function files(folder: string, pattern: RegExp): string[] {
  const directory = path.resolve(__dirname, folder);
  const names = readdirSync(directory).filter((name) => pattern.test(name) && !name.endsWith('.d.ts'));
  return names.sort().map((name) => path.join(directory, name));
}

interface Hooks {
  prepare: Prepare | undefined;
  confirm: Confirm | undefined;
}

function wrapRoot(
  config: FieldConfig,
  field: RootField,
  validate: FieldValidator,
  { prepare, confirm }: Hooks,
): Resolve {
  const resolve = config.resolve;
  if (!resolve) throw new Error(`schema: ${field.name}: no resolver`);
  const run = field.kind === 'mutation' ? mutation(field, resolve) : query(resolve);
  return async (source, args, ctx, info) => {
    // The REST facade has admitted the caller and validated the request before it came here.
    if (ctx.face === 'rest') return run(source, args, ctx, info);
    const inner: Context = { ...ctx };
    const refusal = await refusalOf(
      inner,
      field,
      field.projectArgument ? (args[field.projectArgument] as string | undefined) : undefined,
    );
    // For the log of refusals, which has one project per request: that of the first root field.
    ctx.project ??= inner.project;
    if (refusal) throw refusal;
    const valid = validate(args);
    inner.probed = await prepare?.(valid, inner);
    const result = await run(source, valid, inner, info);
    await confirm?.(valid, inner);
    return result;
  };
}

function query(resolve: Resolve): Resolve {
  return async (source, args, ctx, info) => {
    const result = await resolve(source, args, ctx, info);
    if (result instanceof Resource) ctx.reply.etag = result.etag;
    return result;
  };
}

function mutation(field: RootField, resolve: Resolve): Resolve {
  return (source, args, ctx, info) => {
    // What relations of an earlier mutation of the request have read may be changed now.
    ctx.loaders.clear();
    return ctx.transact(async (inner) => {
      const sent = field.body ? args[field.body.argument] : undefined;
      inner.activity = { resource: null, changed_fields: Object.keys(sent ?? {}) };
      const result = await resolve(source, args, inner, info);
      recordActivity(inner, field.action as string);
      if (result instanceof Resource) ctx.reply.etag = result.etag;
      return result;
    });
  };
}

// A relation may lead to another kind: its scope is checked there too, else a selection would go around the root fields.
function wrapRelation(schema: GraphQLSchema, config: FieldConfig, name: string): FieldConfig | undefined {
  const relation = getDirective(schema, config, 'graphqlOnly')?.[0];
  if (!relation) return undefined;
  const scope = relation.scope as string | undefined;
  if (!scope || !isScopeRule(scope)) throw new Error(`schema: ${name}: @graphqlOnly needs a known scope`);
  const resolve = config.resolve ?? defaultFieldResolver;
  return {
    ...config,
    resolve: (source, args, ctx, info) => {
      if (ctx.identity) requireScope(ctx.identity, scope as ScopeRule);
      return resolve(source, args, ctx, info);
    },
  };
}
