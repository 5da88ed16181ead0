// Objects of this installation. What somebody else has made under the same name is never touched.
import { DriverError, type DriverContext } from '../../../core/driver';
import type { KubernetesClient } from '../../kubernetes/client/client';
import {
  resourceTypes,
  type KubernetesObject,
  type ObjectName,
  type ResourceType,
} from '../../kubernetes/client/resource_type';
import { INSTALLATION_ID, LABEL, namespaceOf, selectorText } from './names';

export interface OwnObjects {
  client: KubernetesClient;
  /** KUBERNETES_NAMESPACE_PREFIX: tells the installations of a cluster apart. */
  prefix: string;
  /** Its id: tells those apart that were given the same prefix by mistake. Absent: they are not told apart. */
  installation?(): Promise<string>;
}

/** Types of the objects that a workload has, and that carry its label. */
export const OF_WORKLOADS: readonly ResourceType<KubernetesObject>[] = [
  resourceTypes.deployments,
  resourceTypes.secrets,
  resourceTypes.networkPolicies,
  resourceTypes.podDisruptionBudgets,
];

/** Creates the object or sets the fields that are named. @throws DriverError `conflict` for somebody else's */
export async function applyOwn<T extends KubernetesObject>(
  own: OwnObjects,
  type: ResourceType<T>,
  object: T,
  ctx: DriverContext,
): Promise<T> {
  return applyOver(own, type, await own.client.get(type, keyOf(object), ctx), object, ctx);
}

/**
 * What somebody puts into its place after that is not touched: what is there is changed by its uid, and where there was
 * none, no field of another manager is taken over.
 * @param present the object of this name, as it was read
 * @throws DriverError `conflict` for somebody else's, `transient` where another one has taken its place
 */
export async function applyOver<T extends KubernetesObject>(
  own: OwnObjects,
  type: ResourceType<T>,
  present: T | null,
  object: T,
  ctx: DriverContext,
): Promise<T> {
  if (present !== null && !isOwn(own, present))
    throw new DriverError(
      'conflict',
      `The cluster has a ${type.kind} ${keyOf(object).name} that this platform did not create.`,
    );
  if (present === null) return own.client.apply(type, object, ctx);
  const metadata = { ...object.metadata, uid: present.metadata?.uid };
  return own.client.apply(type, { ...object, metadata }, ctx, { force: true });
}

export function isOwn({ prefix }: Pick<OwnObjects, 'prefix'>, { metadata }: KubernetesObject): boolean {
  return metadata?.labels?.[LABEL.installation] === prefix;
}

/** Labels are soon copied: an object elsewhere than in the namespace of its project is somebody else's. */
export function isInItsProject({ prefix }: Pick<OwnObjects, 'prefix'>, { metadata }: KubernetesObject): boolean {
  const project = metadata?.labels?.[LABEL.project];
  return project !== undefined && metadata?.namespace === namespaceOf(prefix, project);
}

/** Those of the scope that are in the namespace of their project. @throws DriverError */
async function listOwn<T extends KubernetesObject>(
  own: OwnObjects,
  type: ResourceType<T>,
  labels: Record<string, string>,
  ctx: DriverContext,
): Promise<T[]> {
  const labelSelector = selectorText({ [LABEL.installation]: own.prefix, ...labels });
  return (await own.client.list(type, { labelSelector }, ctx)).items.filter((object) => isInItsProject(own, object));
}

/**
 * Removes all that carries the labels; pods get their grace time, and reach until its end what they were allowed to.
 * @returns whether nothing is left. @throws DriverError
 */
export async function removeOwn(
  own: OwnObjects,
  types: readonly ResourceType<KubernetesObject>[],
  labels: Record<string, string>,
  ctx: DriverContext,
): Promise<boolean> {
  const remove = async (type: ResourceType<KubernetesObject>): Promise<void> => {
    for (const { metadata } of await listOwn(own, type, labels, ctx))
      await own.client.remove(type, keyOf({ metadata }), { propagation: 'Background', uid: metadata?.uid }, ctx);
  };
  for (const type of types) if (type !== resourceTypes.networkPolicies) await remove(type);
  if ((await listOwn(own, resourceTypes.pods, labels, ctx)).length > 0) return false;
  await remove(resourceTypes.networkPolicies);
  return true;
}

/** Whether a namespace is of another installation with the same prefix. */
export async function isOfAnother({ installation }: OwnObjects, { metadata }: KubernetesObject): Promise<boolean> {
  const owner = metadata?.annotations?.[INSTALLATION_ID];
  return owner !== undefined && installation !== undefined && owner !== (await installation());
}

/**
 * Those of the labels that no row may be looked for, and nothing removed for want of one, are left out: they are in
 * namespaces of another installation. @throws DriverError
 */
export async function* listForSweep(
  own: OwnObjects,
  types: readonly ResourceType<KubernetesObject>[],
  labels: Record<string, string>,
  ctx: DriverContext,
): AsyncGenerator<KubernetesObject> {
  const others = new Set<string>();
  const labelSelector = selectorText({ [LABEL.installation]: own.prefix });
  for (const namespace of (await own.client.list(resourceTypes.namespaces, { labelSelector }, ctx)).items)
    if (await isOfAnother(own, namespace)) others.add(namespace.metadata?.name ?? '');
  for (const type of types)
    for (const object of await listOwn(own, type, labels, ctx))
      if (!others.has(object.metadata?.namespace ?? '')) yield object;
}

export function keyOf({ metadata }: KubernetesObject): ObjectName {
  return { name: metadata?.name ?? '', namespace: metadata?.namespace };
}
