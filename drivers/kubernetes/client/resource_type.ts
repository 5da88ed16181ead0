// Kinds of objects that the platform works with, and their addresses (Kubernetes' API conventions).
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1';
import type { Job } from 'kubernetes-types/batch/v1';
import type { Lease } from 'kubernetes-types/coordination/v1';
import type {
  ConfigMap,
  Event,
  LimitRange,
  Namespace,
  Node,
  PersistentVolumeClaim,
  Pod,
  ResourceQuota,
  Secret,
  Service,
  ServiceAccount,
} from 'kubernetes-types/core/v1';
import type { ObjectMeta } from 'kubernetes-types/meta/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import type { StorageClass } from 'kubernetes-types/storage/v1';
import { DriverError } from '../../../core/driver';
import type { Subject } from './failure';

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** `T` is the type of its objects. */
export interface ResourceType<T extends KubernetesObject> {
  apiVersion: string;
  kind: string;
  plural: string;
  /** `cluster`: its objects are in no namespace. */
  scope: 'namespace' | 'cluster';
  /** Of types alone. */
  object?: T;
}

/** Of the metrics API, which a cluster may lack. */
export interface PodMetrics extends KubernetesObject {
  /** When the measurement ended. */
  timestamp: string;
  /** Time that it is about, as in `15.1s`. */
  window: string;
  containers: { name: string; usage: { cpu: string; memory: string } }[];
}

/** Of CloudNativePG, which a cluster may lack: what the platform sets and reads of it. */
export interface FailoverCluster extends KubernetesObject {
  spec?: {
    instances: number;
    imageName: string;
    storage: { size: string; storageClass: string };
    [field: string]: unknown;
  };
  status?: { phase?: string; phaseReason?: string; currentPrimary?: string; conditions?: { type: string }[] };
}

const type = <T extends KubernetesObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  scope: ResourceType<T>['scope'] = 'namespace',
): ResourceType<T> => ({ apiVersion, kind, plural, scope });

export const resourceTypes = {
  configMaps: type<ConfigMap>('v1', 'ConfigMap', 'configmaps'),
  deployments: type<Deployment>('apps/v1', 'Deployment', 'deployments'),
  failoverClusters: type<FailoverCluster>('postgresql.cnpg.io/v1', 'Cluster', 'clusters'),
  events: type<Event>('v1', 'Event', 'events'),
  jobs: type<Job>('batch/v1', 'Job', 'jobs'),
  leases: type<Lease>('coordination.k8s.io/v1', 'Lease', 'leases'),
  limitRanges: type<LimitRange>('v1', 'LimitRange', 'limitranges'),
  namespaces: type<Namespace>('v1', 'Namespace', 'namespaces', 'cluster'),
  networkPolicies: type<NetworkPolicy>('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
  nodes: type<Node>('v1', 'Node', 'nodes', 'cluster'),
  persistentVolumeClaims: type<PersistentVolumeClaim>('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  podDisruptionBudgets: type<PodDisruptionBudget>('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  podMetrics: type<PodMetrics>('metrics.k8s.io/v1beta1', 'PodMetrics', 'pods'),
  pods: type<Pod>('v1', 'Pod', 'pods'),
  resourceQuotas: type<ResourceQuota>('v1', 'ResourceQuota', 'resourcequotas'),
  secrets: type<Secret>('v1', 'Secret', 'secrets'),
  serviceAccounts: type<ServiceAccount>('v1', 'ServiceAccount', 'serviceaccounts'),
  services: type<Service>('v1', 'Service', 'services'),
  statefulSets: type<StatefulSet>('apps/v1', 'StatefulSet', 'statefulsets'),
  storageClasses: type<StorageClass>('storage.k8s.io/v1', 'StorageClass', 'storageclasses', 'cluster'),
};

export interface ObjectName {
  /** For what is in a namespace. */
  namespace?: string;
  name: string;
}

/** Objects of a namespace, or of all of them. */
export interface ListScope {
  namespace?: string;
  /** As in `app=web,tier!=test`. */
  labelSelector?: string;
  /** As in `status.phase=Running`. */
  fieldSelector?: string;
}

export function collectionPath(of: ResourceType<KubernetesObject>, { namespace }: ListScope): string {
  const root = of.apiVersion.includes('/') ? `/apis/${of.apiVersion}` : `/api/${of.apiVersion}`;
  if (of.scope === 'cluster' || namespace === undefined) return `${root}/${of.plural}`;
  return `${root}/namespaces/${segment(namespace)}/${of.plural}`;
}

export function objectPath(of: ResourceType<KubernetesObject>, object: ObjectName, subresource?: string): string {
  if (of.scope === 'namespace' && object.namespace === undefined)
    throw new DriverError('invalid', `The ${of.kind} \`${object.name}\` is named without its namespace.`);
  const path = `${collectionPath(of, { namespace: object.namespace })}/${segment(object.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** What cannot be a name would be another address. */
function segment(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/%]/.test(name))
    throw new DriverError('invalid', `No object of a cluster can have the name \`${name}\`.`);
  return encodeURIComponent(name);
}

export function objectSubject(of: ResourceType<KubernetesObject>, { namespace, name }: ObjectName): Subject {
  const where = of.scope === 'namespace' && namespace !== undefined ? ` in \`${namespace}\`` : '';
  return { name: `the ${of.kind} \`${name}\`${where}`, secret: of.kind === 'Secret' };
}

export function collectionSubject(of: ResourceType<KubernetesObject>, { namespace }: ListScope): Subject {
  const where = namespace === undefined ? '' : ` in \`${namespace}\``;
  return { name: `objects of the kind ${of.kind}${where}`, secret: of.kind === 'Secret' };
}
