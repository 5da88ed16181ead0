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
import { allKinds } from '../../../models/base/registry';
import { deployed } from '../deployments/deployed';
import { settleRow } from '../world_databases';
import { core, createOperation, kindOfParam, operations, type World } from '../world';

export type Values = Record<string, unknown>;

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

/** A row of the operation's kind in one of its forms. */
export interface Form {
  name: string;
  /** Fields of the body that makes it, beside those of the documented example. */
  body?(world: World): Promise<Values> | Values;
  /** What requests and jobs do afterwards. */
  then?(world: World, id: string): Promise<unknown>;
}

const patch =
  (body: Values) =>
  (place: (id: string) => string): Form['then'] =>
  async (world, id) => {
    const answer = await world.call('PATCH', place(id), { body });
    if (answer.status >= 300) throw new Error(`${place(id)}: ${answer.status} ${answer.text}`);
  };

const record = (type: string, fields: Values): Form => ({ name: type, body: () => ({ type, ...fields }) });
const notifier = (type: string, config: Values): Form => ({ name: type, body: () => ({ type, config }) });

/** Forms of a kind in which other fields count. A kind without a line has the row of the documented example alone. */
const FORMS: Record<string, Form[]> = {
  application: [
    { name: 'without a source', body: () => ({ source: undefined }) },
    { name: 'of a preset', body: () => ({ source: undefined, preset: 'static-site' }) },
    { name: 'of an image', body: () => ({ source: { type: 'image', image: 'registry.example.com/acme/shop:1.4' } }) },
    {
      name: 'with settings',
      then: patch({
        http: { port: 8080, force_https: false },
        health_check: { type: 'http', path: '/up' },
        previews: { expire_after_days: null },
        log_retention_days: 3,
      })((id) => `/v2/applications/${id}/settings`),
    },
    {
      name: 'with auto-deploy',
      async then(world, id) {
        await patch({ enabled: true, paths: ['src/**'] })((of) => `/v2/applications/${of}/auto_deploy`)?.(world, id);
        await world.service.sql(
          `update auto_deploys set status_reason = 'The repository cannot be read.', failures = 3 where id = $1`,
          [id],
        );
      },
    },
    {
      name: 'of a size that is not offered any more',
      then: (world, id) => world.service.sql(`update applications set application_type = 'gone' where id = $1`, [id]),
    },
  ],
  bucket: [
    {
      name: 'a website',
      body: () => ({ access: 'public_read', website: { index_document: 'index.html' }, quota_gb: null }),
    },
    {
      name: 'locked',
      body: () => ({ versioning: true, object_lock: true, default_retention: { mode: 'governance', days: 3 } }),
    },
  ],
  cdn_zone: [
    {
      name: 'that is served',
      then: (world, id) => world.service.sql(`update cdn_zones set status = 'active' where id = $1`, [id]),
    },
    {
      name: 'before an application',
      body: async (world) => ({ origin: { type: 'application', application_id: await world.id('application') } }),
    },
    {
      name: 'with a cache',
      body: () => ({ cache: { browser_ttl_seconds: 60, query_string: 'ignore' }, enabled: false }),
    },
  ],
  database_endpoint: [
    { name: 'private', body: () => ({ access: 'private', allowed_sources: undefined }) },
    { name: 'pooled', body: () => ({ access: 'private', allowed_sources: undefined, pool_mode: 'session' }) },
  ],
  bucket_access_key: [
    {
      name: 'that has expired',
      then: (world, id) =>
        world.service.sql(
          `update bucket_access_keys set expires_at = now() - interval '1 day', status = 'expired' where id = $1`,
          [id],
        ),
    },
  ],
  dns_record: [
    record('MX', { value: 'mail.example.com', priority: 10 }),
    record('SRV', { name: '_sip._tcp.phone', value: 'sip.example.com', priority: 1, weight: 2, port: 5060 }),
    record('CAA', { value: 'ca.example.com', flags: 0, tag: 'issue' }),
    record('TXT', { value: 'v=spf1 -all', ttl: 300, comment: 'mail' }),
    record('CNAME', { name: 'alias', value: 'www.example.com' }),
  ],
  email_domain: [
    {
      name: 'that is verified',
      then: (world, id) =>
        world.service.sql(`update email_domains set status = 'verified', verified_at = now() where id = $1`, [id]),
    },
  ],
  email_relay_zone: [
    {
      name: 'of a domain that is no longer verified',
      then: (world) =>
        world.service.sql(`update email_domains set status = 'failed' where project_id = $1`, [world.project]),
    },
  ],
  git_integration: [
    {
      name: 'that was granted',
      then: (world, id) => world.service.sql(`update git_integrations set status = 'active' where id = $1`, [id]),
    },
  ],
  notifier: [
    notifier('email', { addresses: ['ops@example.com'] }),
    notifier('slack', { webhook_url: 'https://hooks.example.com/services/T0/B0/secret' }),
    notifier('pagerduty', { routing_key: 'R0123456789abcdef0123456789abcde' }),
    notifier('webhook', { url: 'https://ops.example.com/hooks', events: ['application.created'] }),
  ],
  observer: [
    {
      name: 'with headers',
      body: () => ({
        uptime: { target: 'https://check.invalid/', headers: [{ name: 'X-Token', value: 'a secret' }] },
        reminder_minutes: 30,
      }),
    },
    { name: 'of a port', body: () => ({ uptime: { check: 'tcp', target: 'check.invalid:443' } }) },
    {
      name: 'of a metric',
      body: async (world) => ({
        type: 'metric',
        uptime: undefined,
        metric: {
          resource_type: 'application',
          resource_id: await world.id('application'),
          metric: 'cpu_percent',
          operator: 'gt',
          threshold: 80,
        },
      }),
    },
  ],
  process: [
    {
      name: 'that is deployed, without a command',
      async then(world, id) {
        await world.service.sql(`update processes set command = null where id = $1`, [id]);
        await deployed(world.service, await world.id('application'));
      },
    },
    { name: 'without a command', body: () => ({ command: undefined, application_type: undefined }) },
  ],
  schedule: [{ name: 'with a size', body: () => ({ process_type: 'web', application_type: 's-512mb' }) }],
  shared_repository: [
    {
      name: 'that was verified',
      then: (world, id) => world.service.sql(`update shared_repositories set status = 'active' where id = $1`, [id]),
    },
    { name: 'with a deploy key', body: () => ({ url: `git@git.example.com:acme/shop-${Date.now()}.git` }) },
  ],
  volume: [
    {
      name: 'attached',
      body: async (world) => ({ application_id: await world.id('application'), mount_path: `/data/${Date.now()}` }),
    },
  ],
};

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

/** Values of fields that can be cleared: those that the schema gives no example of, and what they need beside them. */
const SETTABLE: Record<string, (world: World) => Promise<Values> | Values> = {
  'updateApplication source': () => ({ source: { type: 'image', image: 'registry.example.com/acme/shop:2' } }),
  'updateApplication source.branch': () => ({ source: { branch: 'other' } }),
  'updateApplicationSettings build.builder': () => ({ build: { builder: 'dockerfile' } }),
  'updateApplicationSettings build.buildpacks': () => ({ build: { buildpacks: ['one'] } }),
  'updateApplicationSettings build.dockerfile_path': () => ({ build: { dockerfile_path: 'docker/Dockerfile' } }),
  'updateApplicationSettings build.root_directory': () => ({ build: { root_directory: 'apps/web' } }),
  'updateApplicationSettings health_check.type': () => ({ health_check: { type: 'none' } }),
  'updateBucket default_retention': () => ({
    versioning: true,
    object_lock: true,
    default_retention: { mode: 'governance', days: 1 },
  }),
  'updateBucket website': () => ({ access: 'public_read', website: { index_document: 'index.html' } }),
  'updateBucketAccessKey expires_at': () => ({ expires_at: new Date(Date.now() + 86_400_000).toISOString() }),
  'updateDatabaseEndpoint pool_mode': () => ({ pool_mode: 'transaction' }),
  'updateDatabaseEndpoint pool_size': () => ({ pool_mode: 'session', pool_size: 5 }),
  'updateNotifier config.secret': () => ({ config: { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } }),
  'updateNotifier config.events': () => ({ config: { events: ['application.created'] } }),
  'updateProject description': () => ({ description: 'The web shop' }),
  'updateSchedule process_type': () => ({ process_type: 'web' }),
  'updateVolume application_id': async (world) => ({
    application_id: await world.id('application'),
    mount_path: `/data/${Date.now()}`,
  }),
};

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
