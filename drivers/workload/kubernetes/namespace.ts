// The namespace of a project: its pods reach each other, the Internet and nothing else of the cluster.
import type { Namespace } from 'kubernetes-types/core/v1';
import type { NetworkPolicy, NetworkPolicyPeer } from 'kubernetes-types/networking/v1';
import { DriverError, type DriverContext } from '../../../core/driver';
import { resourceTypes } from '../../kubernetes/client/resource_type';
import { INSTALLATION_ID, namespaceOf, projectLabels } from './names';
import { applyOver, applyOwn, isOfAnother, keyOf, type OwnObjects } from './own_object';
import { ensureProjectQuota, type ProjectRoom } from './project_quota';

/** What the operator says about networks of the cluster. */
interface NetworkSettings {
  /** Namespace in which the ingress runs. */
  ingressNamespace: string | null;
  /** CIDRs outside of the cluster from which an ingress connects. */
  ingressAddresses: readonly string[];
  /** Private CIDRs that applications may connect to. */
  egressAllow: readonly string[];
}

export interface ProjectOptions extends OwnObjects {
  networks: NetworkSettings;
  /** For all projects the same. */
  room: ProjectRoom;
}

/** Before anything is put into it. Repeatable. @throws DriverError `conflict` where somebody else has the name */
export async function ensureProject(options: ProjectOptions, projectId: string, ctx: DriverContext): Promise<void> {
  const { prefix, networks } = options;
  await ensureNamespace(options, projectId, ctx);
  await applyOwn(options, resourceTypes.networkPolicies, projectNetworkPolicy(prefix, projectId, networks), ctx);
  await ensureProjectQuota(options, projectId, ctx);
}

async function ensureNamespace(options: ProjectOptions, projectId: string, ctx: DriverContext): Promise<void> {
  const { client, prefix, installation } = options;
  const namespace = projectNamespace(prefix, projectId);
  const present = await client.get(resourceTypes.namespaces, keyOf(namespace), ctx);
  if (present !== null && (await isOfAnother(options, present)))
    throw new DriverError(
      'conflict',
      `The namespace ${keyOf(namespace).name} is of another installation with the same KUBERNETES_NAMESPACE_PREFIX.`,
    );
  const annotations = installation && { [INSTALLATION_ID]: await installation() };
  const owned = { ...namespace, metadata: { ...namespace.metadata, annotations } };
  await applyOver(options, resourceTypes.namespaces, present, owned, ctx);
}

/** Not to be reached from applications: nodes, other pods and services, metadata of the machine. */
const PRIVATE_BLOCKS = ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];
const PRIVATE_BLOCKS_6 = ['fc00::/7', 'fe80::/10'];
const DNS_PORT = 53;

/** Pods of it are held to the profile `restricted` of the Pod Security Standards. */
function projectNamespace(prefix: string, projectId: string): Namespace {
  const labels = { ...projectLabels(prefix, projectId), 'pod-security.kubernetes.io/enforce': 'restricted' };
  return { metadata: { name: namespaceOf(prefix, projectId), labels } };
}

/** Applied before anything runs in the namespace. */
function projectNetworkPolicy(
  prefix: string,
  projectId: string,
  { ingressNamespace, ingressAddresses, egressAllow }: NetworkSettings,
): NetworkPolicy {
  const sameNamespace: NetworkPolicyPeer = { podSelector: {} };
  const blocks = (cidrs: readonly string[]): NetworkPolicyPeer[] =>
    cidrs.map((cidr) => ({ ipBlock: { cidr: withBits(cidr) } }));
  return {
    metadata: {
      name: 'platform',
      namespace: namespaceOf(prefix, projectId),
      labels: projectLabels(prefix, projectId),
    },
    spec: {
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            sameNamespace,
            ...(ingressNamespace === null ? [] : [{ namespaceSelector: namedNamespace(ingressNamespace) }]),
            ...blocks(ingressAddresses),
          ],
        },
      ],
      egress: [
        { to: [sameNamespace, ...blocks(egressAllow)] },
        {
          to: [{ namespaceSelector: namedNamespace('kube-system') }],
          ports: [
            { port: DNS_PORT, protocol: 'UDP' },
            { port: DNS_PORT, protocol: 'TCP' },
          ],
        },
        {
          to: [
            { ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE_BLOCKS } },
            { ipBlock: { cidr: '::/0', except: PRIVATE_BLOCKS_6 } },
          ],
        },
      ],
    },
  };
}

function namedNamespace(name: string): { matchLabels: Record<string, string> } {
  return { matchLabels: { 'kubernetes.io/metadata.name': name } };
}

function withBits(cidr: string): string {
  return cidr.includes('/') ? cidr : `${cidr}/32`;
}
