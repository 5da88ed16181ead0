// Settings of the cluster that runs applications instead of this host.
import { cidrs, httpUrlSetting, ipAddress, oneOf, path, slug } from '../setting_types';
import type { Row, Typed } from '../setting_types';

/** Namespaces have 63 characters at most: `-prj-` and the 26 characters of an id follow. */
const NAMESPACE_PREFIX_MAX = 63 - '-prj-'.length - 26;
/** Of names of objects: DNS subdomains (RFC 1123) in lower case. */
const OBJECT_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

/** Others run on the machine alone. */
export const enginesInPods = ['postgresql', 'mariadb', 'redis', 'valkey'] as const;

export const workloadSettings = {
  WORKLOADS: oneOf(['host', 'kubernetes'], {
    default: 'host',
    description:
      'What runs applications. host: the machine with INGRESS_PORT. kubernetes: a cluster, see docs/KUBERNETES.md.',
  }),
  KUBECONFIG: path({
    default: null,
    derived: 'the service account of the pod in which the service runs',
    description: 'File with the address and credentials of the cluster; its current context counts.',
  }),
  KUBERNETES_NAMESPACE_PREFIX: namespacePrefix({
    default: 'platform',
    description:
      'First part of the namespaces of projects in the cluster: another one for each installation of a cluster.',
  }),
  KUBERNETES_INGRESS_NAMESPACE: objectName({
    default: null,
    description: 'Namespace of the cluster in which the ingress runs: its pods may connect to applications.',
  }),
  KUBERNETES_INGRESS_ADDRESSES: cidrs({
    default: '',
    description: 'Addresses or CIDRs outside of the cluster from which an ingress connects to applications.',
  }),
  KUBERNETES_EGRESS_ALLOW: cidrs({
    default: '',
    description:
      'Private addresses or CIDRs that applications in the cluster may connect to, such as servers of your own.',
  }),
  KUBERNETES_PREVIEW_PRIORITY_CLASS: objectName({
    default: null,
    description:
      'Priority class of the pods of previews, below that of other pods: they go first where room is scarce.',
  }),
  KUBERNETES_STORAGE_CLASS: objectName({
    default: null,
    derived: 'the default class of the cluster',
    description: 'Storage class of volumes.',
  }),
  DATABASE_ADDRESS_FOR_PODS: ipAddress({
    default: null,
    description: 'IP address of this machine at which applications in the cluster reach attached databases.',
  }),
  DATABASE_SOURCES_OF_PODS: cidrs({
    default: '',
    description:
      'Addresses or CIDRs from which connections of pods come to this machine: attached databases accept them.',
  }),
  DATABASE_IMAGES: databaseImages({
    default: '',
    description:
      'Images of database servers, such as redis:7.0=registry.example.com/redis:7.0. New databases of these engines ' +
      'and versions run in the cluster, all others on this machine. Needs WORKLOADS=kubernetes.',
  }),
  REGISTRY_URL_FOR_NODES: httpUrlSetting({
    default: null,
    derived: 'https:// and REGISTRY_HOST',
    description: 'Address under which nodes of the cluster reach the registry of the platform.',
  }),
};

function namespacePrefix<const R extends Row>(row: R): Typed<string, R> {
  const parse = (given: string): string | null => (given.length > NAMESPACE_PREFIX_MAX ? null : slug(row).parse(given));
  return { ...row, type: `slug, at most ${NAMESPACE_PREFIX_MAX} characters`, parse };
}

/** An image that new databases of this engine and version run in a pod. */
export interface DatabaseImage {
  engine: string;
  version: string;
  /** As a kubelet takes it. */
  image: string;
}

function databaseImages<const R extends Row>(row: R): Typed<readonly DatabaseImage[], R> {
  const parse = (given: string): readonly DatabaseImage[] | null => {
    const found = given.split(',').flatMap((each) => {
      const [, engine = '', version = '', image = ''] =
        /^([a-z]+):(\d+(?:\.\d+)?)=([\w.:/@-]+)$/.exec(each.trim()) ?? [];
      const isSeries = version.includes('.') === (engine !== 'postgresql');
      return isSeries && enginesInPods.some((one) => one === engine) ? [{ engine, version, image }] : [];
    });
    const isWhole = found.length === given.split(',').length;
    const names = new Set(found.map(({ engine, version }) => `${engine}:${version}`));
    return given === '' ? [] : isWhole && names.size === found.length ? found : null;
  };
  return {
    ...row,
    type: `list of engine:version=image; engines ${new Intl.ListFormat('en').format(enginesInPods)}`,
    parse,
  };
}

/** Of an object that is in the cluster. */
function objectName<const R extends Row>(row: R): Typed<string, R> {
  return { ...row, type: 'name of an object', parse: (given) => (OBJECT_NAME.test(given) ? given : null) };
}
