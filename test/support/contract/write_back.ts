// Rows of every kind that can be updated, in the forms that differ, and what of an answer an update takes.
import {
  getNullableType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
} from 'graphql';
import type { Operation } from '../../../contract/operations';
import { specOf } from '../../../contract/spec';
import { allKinds } from '../../../models/base/kinds';
import { FORMS, SETTABLE, type Form, type Values } from './write_back_forms';
import { settleRow } from '../world_databases';
import { core, createOperation, kindOfParam, operations, type World } from '../world';

/** Operations that change a resource by a body. */
export const updates: Operation[] = operations.filter(
  ({ method, field }) => (method === 'PATCH' || method === 'PUT') && field.body,
);

/** The fields that an input takes, as an answer shows them; those that no answer shows are left out. */
export function writableOf(type: GraphQLInputType, value: unknown): unknown {
  const inner = getNullableType(type);
  if (value === null || value === undefined) return value;
  if (isListType(inner))
    return (value as unknown[]).map((entry) => writableOf(inner.ofType as GraphQLInputType, entry));
  if (!isInputObjectType(inner)) return value;
  const shown = value as Values;
  const fields = Object.values(inner.getFields()).filter(({ name }) => shown[name] !== undefined);
  return Object.fromEntries(fields.map(({ name, type: own }) => [name, writableOf(own, shown[name])]));
}

export interface Target {
  place: string;
  /** The fields of the body as the resource is read. */
  read(): Promise<Values>;
  /** The columns of the row, without those of its versions and of the loop. */
  stored(): Promise<Values>;
}

/** Kind of the row that the operation changes, or whose document it changes. */
export function kindOf(operation: Operation): string {
  const last = operation.params[operation.params.length - 1];
  return last ? kindOfParam(operation, last.name) : 'project';
}

export const formsOf = (operation: Operation): Form[] => [
  { name: 'of the documented example' },
  ...(FORMS[kindOf(operation)] ?? []),
];

/** A new row of the form, and how to read what the operation changes of it. */
export async function target(world: World, operation: Operation, form: Form): Promise<Target> {
  const kind = kindOf(operation);
  const id = await made(world, kind, form);
  await settleRow(world, kind, id);
  await form.then?.(world, id);
  await settleRow(world, kind, id);
  const place = await world.path(operation, { [kind]: id });
  // A document that is not there until it is set.
  if (operation.method === 'PUT' && kind !== 'environment_variable' && kind !== 'dns_zone')
    await world.call('PUT', place, { body: await world.body(operation) });
  return { place, read: () => read(world, operation, place, id), stored: () => stored(world, kind, id) };
}

async function made(world: World, kind: string, form: Form): Promise<string> {
  const create = createOperation(kind);
  if (!form.body || !create) return world.fresh(kind);
  // Its parents are made with the first row.
  await world.id(kind);
  const body = { ...(await world.body(create)), ...(await form.body(world)) };
  const answer = await world.call('POST', await world.path(create), { body });
  if (answer.status !== 201) throw new Error(`${kind} ${form.name}: ${answer.status} ${answer.text}`);
  return answer.body.id;
}

async function read(world: World, operation: Operation, place: string, id: string): Promise<Values> {
  const getter = operations.find(({ method, path }) => method === 'GET' && path === operation.path);
  const answer = await world.call('GET', getter ? place : place.replace(/\/[^/]*$/, ''));
  if (answer.status !== 200) throw new Error(`GET ${place}: ${answer.status} ${answer.text}`);
  if (!getter) return (answer.body.data as Values[]).find(({ key }) => key === id) as Values;
  if (!getter.field.list) return answer.body;
  const [list] = Object.keys(operation.field.body?.type.getFields() ?? {}) as [string];
  return { [list]: (answer.body.data as Values[]).filter(({ managed_by }) => managed_by == null) };
}

/** Fields that their object, or the type of the record, needs. */
const NEEDED_BY_PARENT = new Set(['updateApplication source.repository_url', 'updateCdnZone origin.url']);
const WHOLE = /^updateBucket default_retention\.|^updateDnsRecord (priority|weight|port|flags)$/;

/** The form of the row in which a field can be set. */
const FORM_OF: Record<string, string> = {
  'updateBucket website.error_document': 'a website',
  'updateDatabaseEndpoint pool_size': 'pooled',
};

/** A field of an update that can be cleared, as a dotted path. */
export interface Clearable {
  path: string;
  form: Form;
  /** A body with a value other than the present one. */
  set(world: World, present: unknown): Promise<Values>;
  clear: Values;
}

/** The fields of an operation that can be cleared, where it is known how to set them. */
export function clearableFields(operation: Operation): Clearable[] {
  const type = operation.field.body?.type as GraphQLInputObjectType;
  return pathsOf(type, []).flatMap(({ path, field }): Clearable[] => {
    const name = `${operation.id} ${path.join('.')}`;
    const known = SETTABLE[name];
    const isKnown = known ?? valueOf(field, null);
    if (isKnown === undefined || NEEDED_BY_PARENT.has(name) || WHOLE.test(name)) return [];
    const form = formsOf(operation).find((one) => one.name === FORM_OF[name]) ?? (formsOf(operation)[0] as Form);
    const body = (value: unknown): Values =>
      path.reduceRight((inner: unknown, part) => ({ [part]: inner }), value) as Values;
    const set = async (world: World, present: unknown): Promise<Values> =>
      known ? await known(world) : body(valueOf(field, present));
    return [{ path: path.join('.'), form, set, clear: body(null) }];
  });
}

function pathsOf(type: GraphQLInputObjectType, above: string[]): { path: string[]; field: GraphQLInputField }[] {
  return Object.values(type.getFields()).flatMap((field) => {
    const path = [...above, field.name];
    const inner = getNullableType(field.type);
    const isClearable = !isNonNullType(field.type) && !specOf(core.graphqlSchema, field).notNull;
    const below = isInputObjectType(inner) && !above.length ? pathsOf(inner, path) : [];
    return isClearable && !isInputObjectType(inner)
      ? [{ path, field }]
      : isClearable
        ? [{ path, field }, ...below]
        : below;
  });
}

/** Another value than the present one, of the schema's example; undefined where it has none. */
function valueOf(field: GraphQLInputField, present: unknown): unknown {
  const { example: text, min, max } = specOf(core.graphqlSchema, field);
  const type = String(field.type);
  if (type === 'Boolean') return !present;
  if (type === 'Int' && typeof present === 'number')
    return present + 1 <= (max ?? Infinity) ? present + 1 : present - 1;
  const example: unknown = text === undefined ? undefined : JSON.parse(text);
  return (example ?? undefined) === undefined && type === 'Int' ? min : (example ?? undefined);
}

const OF_THE_LOOP =
  /^(version|generation|observed_generation|updated_at|next_at|lease_.*|fence|attempts|wakeups|.*_leased_until)$/;

async function stored(world: World, kind: string, id: string): Promise<Values> {
  const table = allKinds().find((one) => one.kind === kind)?.table;
  if (!table) return {};
  const [row] = await world.service.sql<{ row: Values }>(`select to_jsonb(t) as row from ${table} t where id = $1`, [
    id,
  ]);
  return Object.fromEntries(Object.entries(row?.row ?? {}).filter(([name]) => !OF_THE_LOOP.test(name)));
}
