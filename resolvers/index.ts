// Builds the core from the SDL and the resolvers. Its schema runs operations that are admitted already: REST admits by
// itself, and around each root field of the GraphQL schema stands the admission (contract/admission.ts).
import { createRequire } from 'node:module';
import path from 'node:path';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { mapSchema, MapperKind, type IResolvers } from '@graphql-tools/utils';
import { mergeResolvers, mergeTypeDefs } from '@graphql-tools/merge';
import {
  defaultFieldResolver,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  type GraphQLField,
  type GraphQLFieldConfig,
  type GraphQLFieldResolver,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';
import type { Context } from '../core/context';
import { admit, execute, projectPlaceOf, type Confirm, type Prepare, type RootOperation } from '../contract/admission';
import { directiveOf } from '../contract/directives';
import { compileField } from '../contract/field_validator';
import { IRREVERSIBLE } from '../contract/irreversible';
import { requireScope } from '../contract/guard';
import type { LiveReader } from '../contract/live';
import { inputOf, nestedCalls, type NestedOperation } from '../contract/nested';
import { readOperations, takesIfMatch, type OperationTable, type RootField } from '../contract/operations';
import type { Revert } from '../contract/revert';
import { readSdl } from '../contract/sdl';
import { withSubscriptions, type Combination } from '../contract/subscriptions';
import { problem } from '../core/errors';
import { layerFiles } from '../core/layer_files';
import { memoize } from '../core/memoize';
import type { RevertObstacle, Undo } from '../core/undo';
import { isScopeRule, revealsSecrets } from '../core/accounts/scopes';
import { approvalDesk } from '../models/approvals/approval/desk';
import { recordActivity } from '../models/projects/activity';
import { Resource } from '../models/base/resource';
import { transitionalStates } from '../models/base/kinds';

export type { Confirm, Prepare };

const load = createRequire(__filename);

type Field = GraphQLField<unknown, Context, Record<string, unknown>>;
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
  const modules = layerFiles(__dirname, /^(?!index)\w+\.(ts|js)$/).map((file) => load(file) as ResolverModule);
  const schema = makeExecutableSchema({
    typeDefs: mergeTypeDefs(readSdl(path.resolve(__dirname, '../schema'))),
    resolvers: mergeResolvers(modules.map((module) => module.resolvers)),
    resolverValidationOptions: { requireResolversToMatchSchema: 'error' },
    // The schema is nobody else's yet. A copy for each change, as mapSchema makes it, costs 0.1 s of the start.
    updateResolversInPlace: true,
  });
  const table = readOperations(schema);
  const operations = rootOperations(schema, table, modules);
  const live = exported(modules, 'live');
  for (const { name, live: marked } of table.fields.values())
    if (marked !== live.has(name))
      throw new Error(`schema: ${name}: @live and the reader in resolvers/ belong together`);
  for (const { field, confirm } of operations.values())
    if (confirm && !field.errors.includes('dry_run_unsupported'))
      throw new Error(`schema: ${field.name}: it acts before it answers, so its @errors must name dry_run_unsupported`);
  const reverts = exported(modules, 'revert');
  bindNested(table, operations, modules, reverts);
  for (const field of table.fields.values()) runRoot(field, undoOf(field, operations, reverts.get(field.name)));
  for (const [type, field] of relationCandidates(schema)) guardRelation(schema, field, type);
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
  revert?: Record<string, Revert>;
  nested?: Record<string, NestedOperation>;
}

function exported<Name extends 'prepare' | 'confirm' | 'live' | 'combined' | 'revert' | 'nested'>(
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
        ...(field.kind === 'mutation' && !field.session && { desk: approvalDesk }),
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

/** Gives operations that run others what they need for it. */
function bindNested(
  { fields }: OperationTable,
  operations: Map<string, RootOperation>,
  modules: ResolverModule[],
  reverts: ReadonlyMap<string, Revert>,
): void {
  const resolvers = new Map(
    [...fields.values()].map(({ name, definition }) => [name, (definition as Field).resolve as Resolve]),
  );
  const calls = nestedCalls({ operations, resolvers, reverts });
  for (const [name, { prepare, resolve }] of exported(modules, 'nested')) {
    (operations.get(name) as RootOperation).prepare = (args, ctx) => prepare(args, ctx, calls);
    const { definition } = fields.get(name) as RootField;
    (definition as Field).resolve = (_, args, ctx) => resolve(args, ctx, calls);
  }
}

type UndoOf = { notes: boolean; of(ctx: Context, args: Record<string, unknown>): Undo | RevertObstacle };

/** What takes a mutation back once it has succeeded, or why nothing does. */
function undoOf(
  { name: operation }: RootField,
  operations: ReadonlyMap<string, RootOperation>,
  revert: Revert | undefined,
): UndoOf {
  if (!revert) return { notes: false, of: () => IRREVERSIBLE[operation] ?? 'not_kept' };
  const inputs = inputOf(operations);
  return {
    notes: true,
    of: ({ activity }, args) => revert({ operation, args, changes: activity.changes ?? [], inputOf: inputs }),
  };
}

/** A query leaves its ETag; a mutation, which is in its transaction already, also writes its activity entry. */
function runRoot(field: RootField, undo: UndoOf): void {
  const definition = field.definition as Field;
  const resolve = definition.resolve;
  if (!resolve) throw new Error(`schema: ${field.name}: no resolver`);
  definition.resolve = async (source, args, ctx, info) => {
    if (field.kind === 'mutation') {
      const sent = field.body ? args[field.body.argument] : undefined;
      ctx.activity = { resource: null, changed_fields: Object.keys(sent ?? {}), ...(undo.notes && { changes: [] }) };
    }
    // Here, since the repetition of a request that is finished comes no further than its stored response.
    if (ctx.approved) await approvalDesk.spend(ctx, ctx.approved);
    const result = (await resolve(source, args, ctx, info)) as unknown;
    if (field.kind === 'mutation') {
      ctx.activity.undo ??= undo.of(ctx, args);
      recordActivity(ctx, field.action as string);
    }
    if (result instanceof Resource) ctx.reply.etag = result.etag;
    return result;
  };
}

/** The fields of all objects but the roots, each with the name of its type. */
function relationCandidates(schema: GraphQLSchema): [type: string, field: Field][] {
  const roots: GraphQLNamedType[] = [schema.getQueryType(), schema.getMutationType()].filter((type) => type != null);
  const types = Object.values(schema.getTypeMap()).filter((type) => isObjectType(type) || isInterfaceType(type));
  return types
    .filter((type) => !roots.includes(type) && !isIntrospectionType(type))
    .flatMap((type) => Object.values(type.getFields()).map((field): [string, Field] => [type.name, field]));
}

// A relation may lead to another kind: its scope is checked there too, else a selection would go around the root
// fields.
function guardRelation(schema: GraphQLSchema, field: Field, type: string): void {
  const relation = directiveOf(schema, field, 'graphqlOnly');
  if (!relation) return;
  const scope = relation.scope as string | undefined;
  if (!scope || !isScopeRule(scope)) throw new Error(`schema: ${type}.${field.name}: @graphqlOnly needs a known scope`);
  const resolve = field.resolve ?? defaultFieldResolver;
  field.resolve = (source, args, ctx, info) => {
    if (ctx.identity) requireScope(ctx.identity, scope);
    if (!revealsSecrets(scope)) return resolve(source, args, ctx, info);
    return requireWriter(ctx, source as { project_id: string }).then(() => resolve(source, args, ctx, info));
  };
}

/** Secrets of a project are read by those who may write in it. */
async function requireWriter(ctx: Context, { project_id }: { project_id: string }): Promise<void> {
  const access = await ctx.access(project_id);
  if (access?.role === 'viewer') throw problem('role_not_permitted', undefined, { required_role: 'developer' });
}
