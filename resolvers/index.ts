// Builds the core from the SDL and the resolvers. Its schema runs operations that are admitted already: REST admits by
// itself, and around each root field of the GraphQL schema stands the admission (contract/admission.ts).
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { getDirective, mapSchema, MapperKind, type IResolvers } from '@graphql-tools/utils';
import { mergeResolvers, mergeTypeDefs } from '@graphql-tools/merge';
import { defaultFieldResolver, type GraphQLFieldConfig, type GraphQLFieldResolver, type GraphQLSchema } from 'graphql';
import type { Context } from '../core/context';
import { admit, execute, projectPlaceOf, type Confirm, type Prepare, type RootOperation } from '../contract/admission';
import { compileField } from '../contract/field_validator';
import { requireScope } from '../contract/guard';
import type { LiveReader } from '../contract/live';
import { readOperations, takesIfMatch, type OperationTable, type RootField } from '../contract/operations';
import { withSubscriptions, type Combination } from '../contract/subscriptions';
import { problem } from '../core/errors';
import { registeredFiles } from '../core/folder_registry';
import { memoize } from '../core/memoize';
import { isScopeRule, revealsSecrets, type ScopeRule } from '../core/accounts/scopes';
import { recordActivity } from '../models/projects/activity';
import { Resource } from '../models/base/resource';
import { transitionalStates } from '../models/base/registry';

export type { Confirm, Prepare };

const load = createRequire(__filename);

type FieldConfig = GraphQLFieldConfig<unknown, Context, Record<string, unknown>>;
type Resolve = GraphQLFieldResolver<unknown, Context, Record<string, unknown>>;

export interface Core {
  /** Runs operations; callers are admitted before. For REST. */
  schema: GraphQLSchema;
  /** Admits the caller of each root field, and has the subscriptions. For GraphQL. */
  graphqlSchema: GraphQLSchema;
  table: OperationTable;
  /** Root fields by name. */
  operations: ReadonlyMap<string, RootOperation>;
  live: Map<string, LiveReader>;
  /** States that end by themselves, by GraphQL type. */
  transitional: ReadonlyMap<string, readonly string[]>;
}

/**
 * The core: schemas, operation table, validators.
 * @throws Error with one clear line on any contradiction in the SDL or a missing resolver
 */
export function buildCore(): Core {
  const modules = registeredFiles(__dirname, /^(?!index)\w+\.(ts|js)$/).map((file) => load(file) as ResolverModule);
  const raw = makeExecutableSchema({
    typeDefs: mergeTypeDefs(
      registeredFiles(path.resolve(__dirname, '../schema'), /\.graphql$/).map((file) => readFileSync(file, 'utf8')),
      { noLocation: true },
    ),
    resolvers: mergeResolvers(modules.map((module) => module.resolvers)),
    resolverValidationOptions: { requireResolversToMatchSchema: 'error' },
  });
  const table = readOperations(raw);
  const operations = rootOperations(raw, table, modules);
  const live = exported(modules, 'live');
  for (const { name, live: marked } of table.fields.values())
    if (marked !== live.has(name))
      throw new Error(`schema: ${name}: @live and the reader in resolvers/ belong together`);
  for (const { field, confirm } of operations.values())
    if (confirm && !field.errors.includes('dry_run_unsupported'))
      throw new Error(`schema: ${field.name}: it acts before it answers, so its @errors must name dry_run_unsupported`);
  const schema = mapSchema(raw, {
    [MapperKind.ROOT_FIELD]: (config, name) => runRoot(config as FieldConfig, table.fields.get(name) as RootField),
    [MapperKind.COMPOSITE_FIELD]: (config, name, type) => guardRelation(raw, config as FieldConfig, `${type}.${name}`),
  });
  // Most starts are not for GraphQL.
  const admitting = memoize(() =>
    withSubscriptions(admittingSchema(schema, operations), operations, live, exported(modules, 'combined')),
  );
  return {
    schema,
    get graphqlSchema() {
      return admitting();
    },
    table,
    operations,
    live,
    transitional: transitionalStates(),
  };
}

function admittingSchema(schema: GraphQLSchema, operations: ReadonlyMap<string, RootOperation>): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.ROOT_FIELD]: (config, name) => admitRoot(config as FieldConfig, operations.get(name) as RootOperation),
  });
}

interface ResolverModule {
  resolvers: IResolvers;
  prepare?: Record<string, Prepare>;
  confirm?: Record<string, Confirm>;
  live?: Record<string, LiveReader>;
  combined?: Record<string, Combination>;
}

function exported<Name extends 'prepare' | 'confirm' | 'live' | 'combined'>(
  modules: ResolverModule[],
  name: Name,
): Map<string, NonNullable<ResolverModule[Name]>[string]> {
  return new Map(modules.flatMap((module) => Object.entries(module[name] ?? {}))) as never;
}

function rootOperations(
  schema: GraphQLSchema,
  table: OperationTable,
  modules: ResolverModule[],
): Map<string, RootOperation> {
  const prepare = exported(modules, 'prepare');
  const confirm = exported(modules, 'confirm');
  return new Map(
    [...table.fields.values()].map((field) => [
      field.name,
      {
        field,
        validate: compileField(schema, field),
        prepare: prepare.get(field.name),
        confirm: confirm.get(field.name),
      },
    ]),
  );
}

function admitRoot(config: FieldConfig, operation: RootOperation): FieldConfig {
  const resolve = config.resolve as Resolve;
  return {
    ...config,
    async resolve(source, given, ctx, info) {
      // A context per root field, since each acts on a project of its own. As on REST, If-Match is for changes of what
      // is there.
      const inner: Context = { ...ctx, if_match: takesIfMatch(operation.field) ? ctx.if_match : undefined };
      try {
        const args = await admit(inner, operation, {
          ...projectPlaceOf(operation.field, given),
          readArguments: async () => given,
        });
        // What relations of an earlier mutation of the request have read may be changed now.
        if (operation.field.kind === 'mutation') ctx.loaders.clear();
        return await execute(inner, operation, args, async (running) => resolve(source, args, running, info));
      } finally {
        // For the log of refusals, which has one project per request: that of the first root field.
        ctx.project ??= inner.project;
      }
    },
  };
}

/** A query leaves its ETag; a mutation, which is in its transaction already, also writes its activity entry. */
function runRoot(config: FieldConfig, field: RootField): FieldConfig {
  const resolve = config.resolve;
  if (!resolve) throw new Error(`schema: ${field.name}: no resolver`);
  const run: Resolve = async (source, args, ctx, info) => {
    if (field.kind === 'mutation') {
      const sent = field.body ? args[field.body.argument] : undefined;
      ctx.activity = { resource: null, changed_fields: Object.keys(sent ?? {}) };
    }
    const result = (await resolve(source, args, ctx, info)) as unknown;
    if (field.kind === 'mutation') recordActivity(ctx, field.action as string);
    if (result instanceof Resource) ctx.reply.etag = result.etag;
    return result;
  };
  return { ...config, resolve: run };
}

// A relation may lead to another kind: its scope is checked there too, else a selection would go around the root
// fields.
function guardRelation(schema: GraphQLSchema, config: FieldConfig, name: string): FieldConfig | undefined {
  const relation = getDirective(schema, config, 'graphqlOnly')?.[0];
  if (!relation) return undefined;
  const scope = relation.scope as string | undefined;
  if (!scope || !isScopeRule(scope)) throw new Error(`schema: ${name}: @graphqlOnly needs a known scope`);
  const resolve = config.resolve ?? defaultFieldResolver;
  return {
    ...config,
    resolve: (source, args, ctx, info) => {
      if (ctx.identity) requireScope(ctx.identity, scope as ScopeRule);
      if (!revealsSecrets(scope as ScopeRule)) return resolve(source, args, ctx, info);
      return requireWriter(ctx, source as { project_id: string }).then(() => resolve(source, args, ctx, info));
    },
  };
}

/** Secrets of a project are read by those who may write in it. */
async function requireWriter(ctx: Context, { project_id }: { project_id: string }): Promise<void> {
  const access = await ctx.access(project_id);
  if (access?.role === 'viewer') throw problem('role_not_permitted', undefined, { required_role: 'developer' });
}
