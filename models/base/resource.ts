// Resource: what every kind inherits. The one tenancy filter, keyset pages, optimistic versions, quotas.
import { Model, type ModelClass, type QueryBuilder } from 'objection';
import type { Context } from '../../core/context';
import { isId, timeOfId } from '../../core/ids';
import { problem } from '../../core/errors';
import type { StateMachine } from '../../core/states';
import { hasBin, keepInBin, type Bin, type Kept } from './bin';
import { meter } from './metering';
import { compiledQuery, marksOf, bindingsOf, type StatementBuilder } from '../../db/compiled_query';
import { columnsOf, tableOf, type Values } from '../../db/table';
import { insertRow, updateRow } from '../../db/write';
import { checkQuotas, requireCountWithin, requireParentRoom, type ParentLimit, type Quota } from './quota';
import { newRowId, noteRowChange, stateForRevert } from './row_changes';

/** What a kind states about itself; the registry and the loop read it. */
export interface ResourceClass<R extends Resource = Resource> {
  new (): R;
  /** SQL table. */
  readonly table: string;
  /** The table behind it, where `table` is a view. */
  readonly storedIn: string | null;
  /** Kind as in activity entries, file stem of every layer: `dns_record`. */
  readonly kind: string;
  readonly idPrefix: string;
  /** Filter argument -> condition with one `?`, e.g. `{ name: 'name = ?' }`. */
  readonly filters: Record<string, string>;
  /** Columns a list may be sorted by, `id` (= creation time) apart. */
  readonly sorts: readonly string[];
  readonly defaultSort: string;
  readonly states: StateMachine | null;
  readonly quotas: readonly Quota[];
  /** Of child kinds: the most children per parent; the parent is locked while a child is created. */
  readonly parentLimit: ParentLimit | null;
  /**
   * SQL of what rows reserve on the host, used or not: `database_package` (null for storage alone), `nodes` and
   * `storage_gb` of all of them. See models/reference/capacity.ts.
   */
  readonly reserves: string | null;
  /** Counted in usage and in project_not_empty; null for children of other kinds. */
  readonly projectChild: string | null;
  /** Its deleted row stays for good: others refer to it. */
  readonly keepsRow: boolean;
  /** How it is kept for a time after it was deleted; null where it is removed at once. */
  readonly bin: Bin | null;
}

/** With Objection's own types, which hold the class of each row, `Application` would be no `Resource` to TypeScript. */
const UntypedModel = Model as unknown as new () => object;

/** The kind as a model whose builder makes statements. */
export const modelOf = (kind: ResourceClass): ModelClass<Model> => kind as unknown as ModelClass<Model>;

export abstract class Resource extends UntypedModel {
  /** Of Objection. */
  static get tableName(): string {
    return (this as unknown as ResourceClass).table;
  }

  static readonly storedIn: string | null = null;
  static readonly filters: Record<string, string> = {};
  static readonly sorts: readonly string[] = [];
  static readonly defaultSort: string = '-created_at';
  static readonly states: StateMachine | null = null;
  static readonly quotas: readonly Quota[] = [];
  static readonly parentLimit: ParentLimit | null = null;
  static readonly reserves: string | null = null;
  static readonly projectChild: string | null = null;
  static readonly keepsRow: boolean = false;
  static readonly bin: Bin | null = null;

  declare id: string;
  declare project_id: string;
  declare version: number;
  declare created_at: string;
  declare updated_at: string;
  declare status: string;
  declare observed_generation: number;
  /** Of kinds that hold data. */
  declare deletion_protection?: boolean;

  /** Strong validator: API version, then what the driver last reported. */
  get etag(): string {
    return `"${this.version}-${this.observed_generation ?? 0}"`;
  }

  /** The row of the selected project. @throws not_found, also for another project's id or a malformed one */
  static async get<R extends Resource>(
    this: ResourceClass<R>,
    ctx: Context,
    id: string,
    fixed: Values = {},
  ): Promise<R> {
    return (await select(this, ctx, { id, ...fixed })) ?? notFound();
  }

  /** As get, locked for the rest of the transaction. Checks If-Match: for the row that the request addresses. */
  static async forUpdate<R extends Resource>(
    this: ResourceClass<R>,
    ctx: Context,
    id: string,
    fixed: Values = {},
  ): Promise<R> {
    return ((await select(this, ctx, { id, ...fixed }, 'forUpdate')) ?? notFound()).requireMatch(ctx);
  }

  /** As get, held against changes for the rest of the transaction: for a row whose child the request addresses. */
  static async held<R extends Resource>(this: ResourceClass<R>, ctx: Context, id: string): Promise<R> {
    return (await select(this, ctx, { id }, 'forNoKeyUpdate')) ?? notFound();
  }

  /** As held, where nothing of the row needs to be known but that it is there. @throws not_found */
  static async hold<R extends Resource>(this: ResourceClass<R>, ctx: Context, id: string): Promise<{ id: string }> {
    return (await select(this, ctx, { id }, 'forNoKeyUpdate', 'id')) ?? notFound();
  }

  /** As forUpdate, for a row that other columns name; null where there is none. */
  static async forUpdateBy<R extends Resource>(this: ResourceClass<R>, ctx: Context, fixed: Values): Promise<R | null> {
    return (await select(this, ctx, fixed, 'forUpdate'))?.requireMatch(ctx) ?? null;
  }

  /**
   * A row that a body refers to, kept from vanishing until the end of the transaction. @throws reference_not_found with
   * `field`
   */
  static async referenced<R extends Resource>(
    this: ResourceClass<R>,
    ctx: Context,
    id: string,
    field: string,
  ): Promise<R> {
    const found = await select(this, ctx, { id }, 'forShare');
    if (!found)
      throw problem('reference_not_found', `${field}: this project has no usable resource with this id.`, {
        field,
      });
    return found;
  }

  /**
   * A new row of the selected project: quotas checked, id minted unless one is given, due for the loop where the kind
   * has one.
   */
  static async insert<R extends Resource>(this: ResourceClass<R>, ctx: Context, values: Values): Promise<R> {
    const project_id = (values.project_id as string | undefined) ?? ctx.project?.id;
    const id = (values.id as string | undefined) ?? newRowId(ctx, this.idPrefix);
    const created_at = timeOfId(id).toISOString();
    // Sent together, and a row that passes a quota is rolled back.
    if (!ctx.sql.inTransaction) throw new Error('an insert belongs into a transaction');
    const parentId = this.parentLimit && (values[this.parentLimit.column] as string);
    const allowed = Promise.all([
      checkQuotas(ctx, this, project_id, values),
      parentId && requireParentRoom(ctx, this, parentId),
    ]);
    const inserted = insertRow(ctx, modelOf(this), { id, project_id, created_at, updated_at: created_at, ...values });
    await Promise.allSettled([allowed, inserted]);
    await allowed;
    const made = hydrate(this, await inserted);
    touch(ctx, this.kind, made);
    noteRowChange(ctx, this.kind, made, { before: null, after: stateForRevert(ctx, made) });
    meter(ctx, made, values);
    return made;
  }

  /** Writes desired fields: a new version, and due for the loop where the kind has one. Returns this. */
  async update(ctx: Context, changes: Values): Promise<this> {
    const kind = this.constructor as unknown as ResourceClass;
    const before = stateForRevert(ctx, this);
    Object.assign(this, await updateRow(ctx, modelOf(kind), this.id, changes));
    touch(ctx, kind.kind, this);
    noteRowChange(ctx, kind.kind, this, { before, after: stateForRevert(ctx, this) });
    meter(ctx, this, changes);
    return this;
  }

  /** The row as a revert compares and restores it; kinds with sealed columns open them. */
  revertState(_ctx: Pick<Context, 'secrets'>): Values {
    return { ...(this as object) };
  }

  /**
   * Takes the row out of all reads, and into the bin where the kind has one. Else kinds with a loop are torn down
   * behind it, others are gone. Kinds with a bin call it by `removeToBin`.
   */
  async remove(ctx: Context, kept: Kept = {}): Promise<void> {
    const kind = this.constructor as unknown as ResourceClass;
    const { bin, table } = kind;
    const isKept = bin !== null && hasBin(ctx.config);
    // Verbs ask first, and for the project too (deletion_protection.ts). This is for one that has forgotten it.
    if (this.deletion_protection) throw problem('deletion_protected', undefined, { protected_by: this.id });
    touch(ctx, kind.kind, this);
    if (!isKept || !bin.isCharged) meter(ctx, this, null);
    if (isKept) await keepInBin(ctx, kind.kind, this, kept);
    const { id } = this;
    noteRowChange(ctx, kind.kind, this, { before: stateForRevert(ctx, this), after: null });
    if (isKept || staysDeleted(ctx, kind))
      return void (await updateRow(ctx, modelOf(kind), id, { deleted_at: new Date().toISOString() }));
    const query = compiledQuery(`delete ${table}`, (builder) =>
      modelOf(kind)
        .query(builder)
        .delete()
        .where(marksOf(['id'])),
    );
    await ctx.sql.query(query.statement, bindingsOf(query, { id }));
  }

  /**
   * A deleted row, which is in all reads again: kinds with a loop are reconciled.
   * @throws quota_exceeded, and what unique indexes are named after
   */
  static async bringBack<R extends Resource>(
    this: ResourceClass<R>,
    ctx: Context,
    id: string,
    changes: Values,
  ): Promise<R> {
    const resource = hydrate(
      this,
      await updateRow(ctx, modelOf(this), id, { ...changes, deleted_at: null, parked_at: null }),
    );
    await requireCountWithin(ctx, this, resource.project_id);
    touch(ctx, this.kind, resource);
    if (!this.bin?.isCharged) meter(ctx, resource, resource as unknown as Values);
    return resource;
  }

  /**
   * One transition of the state machine; fails where the row has changed since it was read.
   * @throws resource_busy from a transitional status, invalid_state from a settled one that does not allow it
   */
  async move(ctx: Context, to: string, changes: Values = {}): Promise<this> {
    this.requireStatus(stateMachine(this).predecessors(to));
    return this.update(ctx, { status: to, status_reason: null, ...changes });
  }

  /**
   * Compares the version part of If-Match (docs/decisions/0013), where one was sent. @throws precondition_failed
   */
  requireMatch(ctx: Context): this {
    const wanted = ctx.if_match;
    if (wanted === undefined || wanted.trim() === '*') return this;
    const versions = wanted.split(',').map((tag) => /^\s*"(\d+)(?:-\d+)?"\s*$/.exec(tag)?.[1]);
    if (!versions.includes(String(this.version))) throw problem('precondition_failed');
    return this;
  }

  /** @throws resource_busy or invalid_state (members resource_status, allowed_statuses) */
  requireStatus(allowed: readonly string[]): void {
    if (allowed.includes(this.status)) return;
    if (stateMachine(this).transitional.includes(this.status))
      throw problem('resource_busy', undefined, { resource_status: this.status });
    throw problem('invalid_state', undefined, { resource_status: this.status, allowed_statuses: [...allowed] });
  }
}

/** Whether a deleted row is left to a loop, which removes what is behind it first, or stays for good. */
export function staysDeleted(ctx: Pick<Context, 'sql'>, { table, keepsRow }: ResourceClass): boolean {
  return keepsRow || tableOf(ctx, table).columns.includes('generation');
}

function stateMachine(resource: Resource): StateMachine {
  const { states, kind } = resource.constructor as unknown as ResourceClass;
  if (!states) throw new Error(`${kind} has no states`);
  return states;
}

/** Makes a written row an instance of its kind; rows that are read are hydrated by db/statement.ts. */
export function hydrate<R extends Resource>(kind: ResourceClass<R>, row: object): R {
  return Object.setPrototypeOf(row, kind.prototype as object) as R;
}

type Lock = 'forUpdate' | 'forNoKeyUpdate' | 'forShare';

/** @param fixed columns and what they must be; an id among them may be anything that a client sent */
async function select<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  fixed: Values,
  lock?: Lock,
  only?: string,
): Promise<R | null> {
  if ('id' in fixed && !isId(kind.idPrefix, fixed.id as string)) return null;
  const names = Object.keys(fixed);
  const key = `select ${kind.table} ${names.join()} ${lock} ${only}`;
  const build = (builder: StatementBuilder): QueryBuilder<Model> => {
    const info = tableOf(ctx, kind.table);
    const found = modelOf(kind)
      .query(builder)
      .select((only ?? columnsOf(info)).split(', '))
      .where(marksOf(['project_id', ...names]));
    if (info.columns.includes('deleted_at')) found.whereNull('deleted_at');
    return lock ? found[lock]() : found;
  };
  const query = compiledQuery(key, build, { makes: kind, quick: !lock });
  const [row] = await ctx.sql.query<R>(query.statement, bindingsOf(query, { project_id: ctx.project?.id, ...fixed }));
  return row ?? null;
}

/** Remembers the first row that a mutation changed, for its activity entry. */
function touch(ctx: Context, kind: string, resource: Resource): void {
  if (ctx.activity.resource) return;
  const { id, project_id } = resource;
  const named = resource as unknown as { name?: string; hostname?: string; key?: string };
  ctx.activity.resource = {
    type: kind,
    id,
    name: named.name ?? named.hostname ?? named.key ?? null,
    project_id: project_id ?? null,
  };
}

function notFound(): never {
  throw problem('not_found');
}
