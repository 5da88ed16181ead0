// The calls of a cluster's API that the platform makes; drivers/kubernetes/README.md says how they are used.
import type { Readable } from 'node:stream';
import type { Event } from 'kubernetes-types/core/v1';
import { DriverError, type DriverContext } from '../../../core/driver';
import type { ClusterAccess } from './access';
import { openConnection, type ApiRequest, type Connection } from './connection';
import { hasCode } from './failure';
import { followObjects, type Followed, type FollowHandler } from './follow';
import { listResources, type Listed, type ListOptions } from './list';
import { openPodLog, type PodLogOptions } from './pod_log';
import { openPodStream, type PodStream, type PodStreamOptions } from './pod_stream';
import {
  collectionPath,
  collectionSubject,
  objectPath,
  objectSubject,
  resourceTypes,
  type KubernetesObject,
  type ListScope,
  type ObjectName,
  type ResourceType,
} from './resource_type';
import { watchObjects, type WatchEvent, type WatchOptions } from './watch';

/** The field manager of all that the platform applies. */
export const FIELD_MANAGER = 'platform-api';

interface ApplyOptions {
  /** Takes fields over that other managers have; without it that is a `conflict`, which names them. */
  force?: boolean;
  /** Checks it, and changes nothing. */
  dryRun?: boolean;
}

interface RemoveOptions {
  /** `Foreground`: what belongs to it goes first. */
  propagation?: 'Foreground' | 'Background' | 'Orphan';
  /** Only this object, and not one of the same name that came after it: `conflict`. */
  uid?: string;
  gracePeriodSeconds?: number;
}

export interface AccessQuestion {
  verb: string;
  /** '' is the core group. */
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

interface ClusterVersion {
  gitVersion: string;
  major: string;
  minor: string;
}

export interface KubernetesClient {
  version(ctx: DriverContext): Promise<ClusterVersion>;
  reviewAccess(question: AccessQuestion, ctx: DriverContext): Promise<{ allowed: boolean; reason: string | null }>;
  /** Server-side apply: creates the object, or sets the fields that are named. */
  apply<T extends KubernetesObject>(
    of: ResourceType<T>,
    object: T,
    ctx: DriverContext,
    options?: ApplyOptions,
  ): Promise<T>;
  /** Null where there is none of that name. */
  get<T extends KubernetesObject>(of: ResourceType<T>, name: ObjectName, ctx: DriverContext): Promise<T | null>;
  list<T extends KubernetesObject>(
    of: ResourceType<T>,
    scope: ListScope,
    ctx: DriverContext,
    options?: ListOptions<T>,
  ): Promise<Listed<T>>;
  watch<T extends KubernetesObject>(
    of: ResourceType<T>,
    scope: ListScope,
    resourceVersion: string,
    ctx: DriverContext,
  ): AsyncGenerator<WatchEvent<T>>;
  follow<T extends KubernetesObject>(
    of: ResourceType<T>,
    scope: ListScope,
    handler: FollowHandler<T>,
    signal: AbortSignal,
    options?: WatchOptions,
  ): Followed<T>;
  /** A merge patch (RFC 7386). */
  patch<T extends KubernetesObject>(
    of: ResourceType<T>,
    name: ObjectName,
    change: object,
    ctx: DriverContext,
  ): Promise<T>;
  /** What is desired, and what is there. */
  getScale(of: ResourceType<KubernetesObject>, name: ObjectName, ctx: DriverContext): Promise<Scale>;
  setScale(of: ResourceType<KubernetesObject>, name: ObjectName, replicas: number, ctx: DriverContext): Promise<Scale>;
  /** Resolves when the removal has begun; false where there is no such object. */
  remove(
    of: ResourceType<KubernetesObject>,
    name: ObjectName,
    options: RemoveOptions,
    ctx: DriverContext,
  ): Promise<boolean>;
  /** All objects of the scope. @throws DriverError `invalid` without a selector or a namespace */
  removeAll(
    of: ResourceType<KubernetesObject>,
    scope: ListScope,
    options: Omit<RemoveOptions, 'uid'>,
    ctx: DriverContext,
  ): Promise<void>;
  openPodLog(pod: ObjectName, options: PodLogOptions, ctx: DriverContext): Promise<Readable>;
  openPodStream(pod: ObjectName, options: PodStreamOptions, ctx: DriverContext): Promise<PodStream>;
  /** Events about one object, oldest first. */
  eventsOf(object: KubernetesObject, ctx: DriverContext): Promise<Event[]>;
  close(): void;
}

interface Scale {
  desired: number;
  observed: number;
}

export function openKubernetesClient(access: ClusterAccess): KubernetesClient {
  const connection = openConnection(access);
  return {
    ...clusterCalls(connection),
    ...objectCalls(connection),
    ...scaleCalls(connection),
    ...removals(connection),
    list: (of, scope, ctx, options) => listResources(connection, of, scope, ctx, options),
    watch: (of, scope, resourceVersion, ctx) => watchObjects(connection, of, scope, resourceVersion, ctx),
    follow: (of, scope, handler, signal, options) => followObjects(connection, of, scope, handler, signal, options),
    openPodLog: (pod, options, ctx) => openPodLog(connection, pod, options, ctx),
    openPodStream: (pod, options, ctx) => openPodStream(connection, pod, options, ctx),
    eventsOf: (object, ctx) => listEvents(connection, object, ctx),
    close: () => connection.close(),
  };
}

function clusterCalls(connection: Connection): Pick<KubernetesClient, 'version' | 'reviewAccess'> {
  const subject = { name: 'the version of the cluster', secret: false };
  return {
    version: async (ctx) =>
      (await connection.send({ method: 'GET', path: '/version', subject }, ctx)) as ClusterVersion,
    async reviewAccess(question, ctx) {
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      const body = {
        ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' },
        spec: { resourceAttributes: question },
      };
      const subject = { name: 'the rights of the platform', secret: false };
      const answer = (await connection.send({ method: 'POST', path, body, subject }, ctx)) as {
        status?: { allowed?: boolean; reason?: string };
      };
      return { allowed: answer.status?.allowed === true, reason: answer.status?.reason || null };
    },
  };
}

function objectCalls(connection: Connection): Pick<KubernetesClient, 'apply' | 'get' | 'patch'> {
  return {
    async apply<T extends KubernetesObject>(
      of: ResourceType<T>,
      object: T,
      ctx: DriverContext,
      { force = false, dryRun = false }: ApplyOptions = {},
    ) {
      const name = nameOf(object);
      const query = { fieldManager: FIELD_MANAGER, fieldValidation: 'Strict', force, dryRun: dryRun ? 'All' : null };
      const body = { ...object, apiVersion: of.apiVersion, kind: of.kind };
      // JSON is YAML, too.
      const contentType = 'application/apply-patch+yaml';
      return (await connection.send(
        { method: 'PATCH', path: objectPath(of, name), query, body, contentType, subject: objectSubject(of, name) },
        ctx,
      )) as T;
    },
    async get<T extends KubernetesObject>(of: ResourceType<T>, name: ObjectName, ctx: DriverContext) {
      const request = { method: 'GET', path: objectPath(of, name), subject: objectSubject(of, name) } as const;
      return (await unlessAbsent(connection.send(request, ctx))) as T | null;
    },
    async patch<T extends KubernetesObject>(of: ResourceType<T>, name: ObjectName, change: object, ctx: DriverContext) {
      return (await connection.send(
        { ...mergePatch(change), path: objectPath(of, name), subject: objectSubject(of, name) },
        ctx,
      )) as T;
    },
  };
}

function mergePatch(body: object): Pick<ApiRequest, 'method' | 'query' | 'body' | 'contentType'> {
  const query = { fieldManager: FIELD_MANAGER, fieldValidation: 'Strict' };
  return { method: 'PATCH', query, body, contentType: 'application/merge-patch+json' };
}

function scaleCalls(connection: Connection): Pick<KubernetesClient, 'getScale' | 'setScale'> {
  const request = (of: ResourceType<KubernetesObject>, name: ObjectName): Pick<ApiRequest, 'path' | 'subject'> => ({
    path: objectPath(of, name, 'scale'),
    subject: objectSubject(of, name),
  });
  const scaleOf = (answer: unknown): Scale => {
    const { spec, status } = answer as { spec?: { replicas?: number }; status?: { replicas?: number } };
    // Zero is left out.
    return { desired: spec?.replicas ?? 0, observed: status?.replicas ?? 0 };
  };
  return {
    getScale: async (of, name, ctx) => scaleOf(await connection.send({ method: 'GET', ...request(of, name) }, ctx)),
    setScale: async (of, name, replicas, ctx) =>
      scaleOf(await connection.send({ ...mergePatch({ spec: { replicas } }), ...request(of, name) }, ctx)),
  };
}

function removals(connection: Connection): Pick<KubernetesClient, 'remove' | 'removeAll'> {
  const deletion = ({ propagation, uid, gracePeriodSeconds }: RemoveOptions): Pick<ApiRequest, 'method' | 'body'> => ({
    method: 'DELETE',
    body: {
      ...{ apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: propagation, gracePeriodSeconds },
      ...(uid === undefined ? {} : { preconditions: { uid } }),
    },
  });
  return {
    async remove(of, name, options, ctx) {
      const request = { ...deletion(options), path: objectPath(of, name), subject: objectSubject(of, name) };
      return (await unlessAbsent(connection.send(request, ctx))) !== null;
    },
    async removeAll(of, scope, options, ctx) {
      const { labelSelector, fieldSelector, namespace } = scope;
      if (!labelSelector && !fieldSelector && namespace === undefined)
        throw new DriverError('invalid', `All objects of the kind ${of.kind} are removed by a selector only.`);
      const query = { labelSelector, fieldSelector };
      const subject = collectionSubject(of, scope);
      await connection.send({ ...deletion(options), path: collectionPath(of, scope), query, subject }, ctx);
    },
  };
}

async function listEvents(connection: Connection, object: KubernetesObject, ctx: DriverContext): Promise<Event[]> {
  const { namespace, uid } = object.metadata ?? {};
  const scope = { namespace, fieldSelector: `involvedObject.uid=${uid}` };
  const { items } = await listResources(connection, resourceTypes.events, scope, ctx);
  const timeOf = ({ lastTimestamp, eventTime, metadata }: Event): string =>
    lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
  return items.sort((a, b) => timeOf(a).localeCompare(timeOf(b)));
}

async function unlessAbsent(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer;
  } catch (error) {
    if (hasCode(error, 'not_found')) return null;
    throw error;
  }
}

function nameOf({ metadata }: KubernetesObject): ObjectName {
  if (metadata?.name === undefined) throw new DriverError('invalid', 'An object of a cluster has no name.');
  return { name: metadata.name, namespace: metadata.namespace };
}
