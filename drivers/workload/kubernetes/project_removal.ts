// The end of a project's namespace. It goes with all that is in it, so it goes only once nothing in it runs or keeps
// data, and nothing is of somebody else.
import type { Namespace } from 'kubernetes-types/core/v1';
import type { DriverContext } from '../../../core/driver';
import { resourceTypes, type KubernetesObject, type ResourceType } from '../../kubernetes/client/resource_type';
import type { ProjectPlace } from '../../workload';
import { LABEL, namespaceOf, selectorText } from './names';
import { isOfAnother, isOwn, type OwnObjects } from './own_object';
import { sentence } from './pod_state';

type Kind = ResourceType<KubernetesObject>;

/** Whoever they are of, they run or keep data. */
const KEEPING: readonly Kind[] = [
  resourceTypes.persistentVolumeClaims,
  resourceTypes.deployments,
  resourceTypes.statefulSets,
  resourceTypes.jobs,
  resourceTypes.pods,
];
/** Those of this platform go along. */
const GOING: readonly Kind[] = [
  resourceTypes.secrets,
  resourceTypes.configMaps,
  resourceTypes.services,
  resourceTypes.networkPolicies,
  resourceTypes.podDisruptionBudgets,
  resourceTypes.resourceQuotas,
  resourceTypes.limitRanges,
];
/** Controllers put them into each namespace. */
const OF_EVERY_NAMESPACE = new Set(['kube-root-ca.crt', 'openshift-service-ca.crt', 'istio-ca-root-cert']);
const ACCOUNT_TOKEN = 'kubernetes.io/service-account-token';

/** Namespaces of this installation. */
export async function listProjects(own: OwnObjects, ctx: DriverContext): Promise<ProjectPlace[]> {
  const { client, prefix } = own;
  const scope = { labelSelector: selectorText({ [LABEL.installation]: prefix }) };
  const places: ProjectPlace[] = [];
  for (const namespace of (await client.list(resourceTypes.namespaces, scope, ctx)).items) {
    const { name = '', labels = {}, deletionTimestamp } = namespace.metadata ?? {};
    const project_id = labels[LABEL.project];
    // A label alone is soon copied.
    if (project_id === undefined || name !== namespaceOf(prefix, project_id)) continue;
    if (await isOfAnother(own, namespace)) continue;
    places.push({ project_id, name, leaving_since: deletionTimestamp ?? null, reason: reasonOf(namespace) });
  }
  return places;
}

/** Why it does not end, as its controller says it. */
function reasonOf({ status }: Namespace): string | null {
  const held = status?.conditions?.filter(({ status: is, message }) => is === 'True' && message) ?? [];
  return held.length ? held.map(({ message = '' }) => sentence(message)).join(' ') : null;
}

/** @returns what keeps the namespace, as a sentence; null where it is being removed or has gone. @throws DriverError */
export async function removeProject(own: OwnObjects, projectId: string, ctx: DriverContext): Promise<string | null> {
  const { client, prefix } = own;
  const name = namespaceOf(prefix, projectId);
  const namespace = await client.get(resourceTypes.namespaces, { name }, ctx);
  if (namespace === null || namespace.metadata?.deletionTimestamp !== undefined) return null;
  if (!isOwn(own, namespace) || (await isOfAnother(own, namespace)))
    return `The namespace ${name} is not of this installation.`;
  for (const kind of [...KEEPING, ...GOING]) {
    const kept = (await client.list<KubernetesObject>(kind, { namespace: name }, ctx)).items.find((object) =>
      KEEPING.includes(kind) ? true : !isOwn(own, object) && !isOfCluster(object),
    );
    if (!kept) continue;
    const whose = isOwn(own, kept) ? '' : ', which this platform did not create';
    return `The namespace ${name} has the ${kind.kind} ${kept.metadata?.name}${whose}.`;
  }
  await client.remove(resourceTypes.namespaces, { name }, { uid: namespace.metadata?.uid }, ctx);
  return null;
}

function isOfCluster(object: KubernetesObject & { type?: string }): boolean {
  return OF_EVERY_NAMESPACE.has(object.metadata?.name ?? '') || object.type === ACCOUNT_TOKEN;
}
