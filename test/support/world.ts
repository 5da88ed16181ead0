// A project with rows in it. Requests are derived: the path from the operation, the body from its documented example,
// so that a kind which is added later has its rows here without a line of its own.
import { getNamedType, getNullableType, isInputObjectType, type GraphQLInputObjectType } from 'graphql';
import type { Operation } from '../../contract/operations';
import { allKinds } from '../../models/base/kinds';
import { buildCore } from '../../resolvers';
import { openapiDocument } from '../../rest/openapi';
import { deployed, instanceOf, runOf, type DeployedApplication } from './deployments/deployed';
import { SAMPLE_BRANCHES, sampleBranch, sampleRepository } from './builds/sample_repository';
import type { Answer, CallOptions, TestService } from './service';
import { activateCdnZone, childMakers } from './world_children';
import { gitMakers, SHARE_PATH } from './world_git';
import { databaseCollections, databaseMakers, databaseReady, databaseReferences } from './world_databases';

export const core = buildCore();
export const operations: readonly Operation[] = core.table.operations;

const document = openapiDocument({
  table: core.table,
  schema: core.schema,
  transitional: core.transitional,
  baseUrl: 'http://127.0.0.1:8080',
  version: '0.0.0',
});

type Values = Record<string, unknown>;

export interface World {
  service: TestService;
  project: string;
  key: string;
  /** The one row of a kind that everybody may read; made when it is first asked for. */
  id(kind: string): Promise<string>;
  /** A second one, for references and moves. */
  other(kind: string): Promise<string>;
  /** A new row, for changing and deleting. Children stand under the parents that `id` gives. */
  fresh(kind: string): Promise<string>;
  /** The address of an operation in this project. `ids`: kinds whose row is another one. */
  path(operation: Operation, ids?: Record<string, string>): Promise<string>;
  /** A body that the operation takes, with fresh names; undefined where it has none. */
  body(operation: Operation): Promise<Values | undefined>;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Ids, names and addresses that occur only here. */
  marks: Set<string>;
}

/** @param owner project and key; without them the first project and its owner */
export function openWorld(
  service: TestService,
  owner: { id: string; key: string } = { id: service.project, key: service.key },
): World {
  const known = new Map<string, Promise<string>>();
  const once = (name: string, kind: string): Promise<string> => {
    const found = known.get(name) ?? world.fresh(kind);
    known.set(name, found);
    return found;
  };
  const world: World = {
    service,
    project: owner.id,
    key: owner.key,
    marks: new Set([owner.id]),
    id: (kind) => (kind === 'project' ? Promise.resolve(owner.id) : once(kind, kind)),
    other: async (kind) => {
      const id = await once(`other ${kind}`, kind);
      await referable[kind]?.(world, id);
      return id;
    },
    async fresh(kind) {
      const id = await (makers[kind] ?? created)(world, kind);
      if (kind !== 'error' && kind !== 'ai_model') world.marks.add(id);
      return id;
    },
    path: (operation, ids) => pathOf(world, operation, ids ?? {}),
    body: (operation) => bodyOf(world, operation),
    call: (method, place, options) => service.call(method, place, { key: owner.key, project: owner.id, ...options }),
  };
  return world;
}

/** Kinds of the registry, by name. */
export const kindNames: readonly string[] = allKinds().map((kind) => kind.kind);

/** The kind of the row that a parameter of a path names: /volumes/{id} is a volume. */
export function kindOfParam(operation: Operation, name: string): string {
  if (operation.path === SHARE_PATH && name === 'projectId') return 'shared_repository_project';
  const [, parent, collection = ''] =
    new RegExp(`(?:/(\\w+)/\\{\\w+\\})?/(\\w+)/\\{${name}\\}`).exec(operation.path) ?? [];
  const nested = parent && CHILDREN[`${parent} ${collection}`];
  const kind = nested || (allKinds().find(({ table }) => table === collection)?.kind ?? COLLECTIONS[collection]);
  if (!kind) throw new Error(`${operation.id}: whose id is {${name}}?`);
  return kind;
}

/** Collections that are not named like the table of their kind. */
const COLLECTIONS: Record<string, string> = {
  bin: 'bin_entry',
  deleted_projects: 'deleted_project',
  ai_models: 'ai_model',
  env: 'environment_variable',
  errors: 'error',
  paused_keys: 'api_key',
  repositories: 'git_repository',
  schedules: 'schedule',
  records: 'dns_record',
  suppressions: 'email_suppression',
  ...databaseCollections,
};

/** Collections that stand below several kinds. */
const CHILDREN: Record<string, string> = {
  'cdn_zones domains': 'cdn_domain',
  'cdn_zones purges': 'cdn_purge',
  'volumes backups': 'volume_backup',
};

/** Fields that refer to several rows. */
const LISTED: Record<string, string> = { email_domain_ids: 'email_domain' };

/** The kind that a field of a body or a query refers to, undefined where there is no such kind yet. */
export function kindOfReference(field: string): string | undefined {
  const kind = databaseReferences[field] ?? LISTED[field] ?? /^(\w+)_id$/.exec(field)?.[1];
  return kind && kindNames.includes(kind) && kind !== 'project' ? kind : undefined;
}

/** The operation that makes a row of the kind. */
export function createOperation(kind: string): Operation | undefined {
  const type = kind
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
  return operations.find(
    ({ method, status, field, key }) =>
      method === 'POST' && status === 201 && key === field.name && typeName(field.definition.type) === type,
  );
}

export const typeName = (type: Parameters<typeof getNamedType>[0]): string => String(getNamedType(type));

/** Kinds whose rows are not made by a POST of their own. */
const makers: Record<string, (world: World, kind: string) => Promise<string>> = {
  ...childMakers((world, kind) => created(world, kind)),
  ...databaseMakers((world, kind) => created(world, kind)),
  async error() {
    return 'not_found';
  },
  async ai_model() {
    return 'gpt-4o-mini';
  },
  ...gitMakers,
  async environment_variable(world) {
    const key = `KEY_${(serial += 1)}`;
    const value = `value of ${mark(world, key)}`;
    await expectStatus(world, 'PUT', `/v2/applications/${await world.id('application')}/env/${key}`, { value }, 201);
    return key;
  },
  /** Entries come with every mutation; this one can be reverted. */
  async activity(world) {
    const id = await world.fresh('volume');
    await expectStatus(world, 'PATCH', `/v2/volumes/${id}`, { name: `renamed-${(serial += 1)}` }, 200);
    const { body } = await world.call('GET', `/v2/projects/${world.project}/activity?limit=1`);
    return body.data[0].id;
  },
  /** Made by the loop, of what is deployed. */
  async instance(world) {
    return instanceOf(world.service, await deployedOnce(world), 'web');
  },
  async run(world) {
    return runOf(world.service, await deployedOnce(world));
  },
};

/** Deployed once, however many rows need it. */
async function deployedOnce(world: World): Promise<DeployedApplication> {
  const id = await world.id('application');
  running.set(id, running.get(id) ?? deployed(world.service, id));
  return running.get(id) as Promise<DeployedApplication>;
}

const IN_SERVICE = ['createRun', 'stopApplication', 'restartApplication'];
/** Actions that only some states allow, which a new row is not in. */
const READY: Record<string, (world: World, id: string) => Promise<unknown>> = {
  ...databaseReady,
  startApplication: (world, id) => deployed(world.service, id, 'stopped'),
  ...Object.fromEntries(IN_SERVICE.map((operation) => [operation, (world, id) => deployed(world.service, id)])),
  enableDnssec: (world, id) => world.service.sql(`update dns_zones set status = 'active' where id = $1`, [id]),
  rotateDnssecKey: async (world, id) => {
    await world.service.sql(`update dns_zones set status = 'active' where id = $1`, [id]);
    await expectStatus(world, 'POST', `/v2/dns_zones/${id}/dnssec`, undefined, 202);
    await world.service.sql(`update dns_zones set dnssec_status = 'active' where id = $1`, [id]);
  },
  rotateSharedRepositoryDeployKey: (world, id) =>
    world.service.sql(`update shared_repositories set access = 'deploy_key' where id = $1`, [id]),
  triggerSchedule: deployedOnce,
  createCdnPurge: activateCdnZone,
  redeployPreview: (world, id) => world.service.sql(`update previews set status = 'running' where id = $1`, [id]),
};

/** Their bodies refer to children of the row that they address, so no other row does. */
const OF_ITS_ROW = ['rollbackApplication', 'restartApplication', 'restoreDatabase'];

/** The row that an action addresses, as `path` takes it: a new one where that works, in a state that allows it. */
export async function addressed(world: World, operation: Operation): Promise<Record<string, string>> {
  const last = operation.params[operation.params.length - 1];
  const kind = last ? kindOfParam(operation, last.name) : 'project';
  if (kind === 'project') return {};
  const id = await (OF_ITS_ROW.includes(operation.id) ? world.id(kind) : world.fresh(kind));
  await READY[operation.id]?.(world, id);
  return { [kind]: id };
}

const running = new Map<string, Promise<DeployedApplication>>();

/** What a row needs before a body may refer to it. */
const referable: Record<string, (world: World, id: string) => Promise<unknown>> = {
  email_domain: (world, id) =>
    world.service.sql(`update email_domains set status = 'verified', verified_at = now() where id = $1`, [id]),
  deployment: (world, id) =>
    world.service.sql(
      `update deployments set status = 'superseded', activated_at = now(), artifact_kept = true
        where id = $1 and activated_at is null`,
      [id],
    ),
};

async function created(world: World, kind: string): Promise<string> {
  const operation = createOperation(kind);
  if (!operation) throw new Error(`no operation makes a ${kind}: give it a maker in test/support/world.ts`);
  return (await expectStatus(world, 'POST', await world.path(operation), await world.body(operation), 201)).id;
}

async function expectStatus(
  world: World,
  method: string,
  place: string,
  body: unknown,
  status: number,
): Promise<Answer['body']> {
  const answer = await world.call(method, place, { body });
  if (answer.status !== status)
    throw new Error(`${method} ${place} ${JSON.stringify(body)}: ${answer.status} ${answer.text}`);
  return answer.body;
}

async function pathOf(world: World, operation: Operation, ids: Record<string, string>): Promise<string> {
  let place = operation.path;
  for (const { name } of operation.params) {
    const kind = kindOfParam(operation, name);
    place = place.replace(`{${name}}`, encodeURIComponent(ids[kind] ?? (await world.id(kind))));
  }
  return place;
}

async function bodyOf(world: World, operation: Operation): Promise<Values | undefined> {
  const { body } = operation.field;
  if (!body) return undefined;
  const content = document.paths[operation.path]?.[operation.method.toLowerCase()]?.requestBody?.content[
    'application/json'
  ] as { example: Values };
  const own = await ownBody(world, body.type, structuredClone(content.example));
  if (operation.id === 'promoteApplication') return { source_application_id: await deployedOther(world) };
  return operation.id === 'applyStack' ? { ...own, plan_token: await planToken(world, own.document) } : own;
}

async function deployedOther(world: World): Promise<string> {
  const id = await world.fresh('application');
  await deployed(world.service, id);
  return id;
}

/** An apply takes what a plan of the same file has answered. */
async function planToken(world: World, document: unknown): Promise<unknown> {
  const plan = await world.call('POST', `/v2/projects/${world.project}/stack/plan`, { body: { document } });
  return plan.body.plan_token;
}

/** The example with names that are free and references that lead to rows of the project. */
async function ownBody(world: World, type: GraphQLInputObjectType, example: Values): Promise<Values> {
  const result: Values = {};
  for (const [name, value] of Object.entries(example)) {
    const inner = getNullableType(type.getFields()[name]?.type);
    const kind = kindOfReference(name);
    if (value === null) result[name] = null;
    else if (isInputObjectType(inner)) result[name] = await ownBody(world, inner, value as Values);
    else if (kind) result[name] = name in LISTED ? [await world.other(kind)] : await world.other(kind);
    else if (type.name === 'AddSharedRepositoryProjectInput') result[name] = (await world.service.newProject()).id;
    else result[name] = typeof value === 'string' ? freeOf(type, name)(world, value) : value;
  }
  return result;
}

type Free = (world: World, example: string) => string;
let serial = 0;
let branches = 0;

/** Fields whose example is taken after its first use, or leads nowhere. */
const FREE: Record<string, Free> = {
  name: (world, example) => mark(world, `${example}-${code(world)}-${(serial += 1)}`),
  hostname: (world, example) => mark(world, `n${(serial += 1)}-${code(world)}.${example}`),
  env_prefix: (_, example) => `${example}_${(serial += 1)}`,
  username: (_, example) => `${example}_${(serial += 1)}`,
  'CreateEmailSuppressionInput.email': () => `person-${(serial += 1)}@example.com`,
  // A name that is known not to be there: nothing of a test leaves the machine.
  'CreateObserverUptimeInput.target': () => 'https://check.invalid/',
  branch: () => sampleBranch(1 + ((branches += 1) % SAMPLE_BRANCHES)),
  repository_url: () => sampleRepository(),
  'CreateSharedRepositoryInput.url': () => `${sampleRepository()}${'/'.repeat((serial += 1))}`,
  'CreateProcessInput.type': (world, example) => `${example}-${code(world).slice(-3)}-${(serial += 1)}`,
};

function freeOf(type: GraphQLInputObjectType, name: string): Free {
  return FREE[`${type.name}.${name}`] ?? FREE[name] ?? ((_, example) => example);
}

/** Tells the worlds of one service apart in names. */
const code = (world: World): string => `w${world.project.slice(-6)}`;

function mark(world: World, text: string): string {
  if (text.includes(code(world))) world.marks.add(text);
  return text;
}
