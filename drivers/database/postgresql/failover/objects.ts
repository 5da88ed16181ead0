// The objects of a PostgreSQL with automatic failover: a Cluster of CloudNativePG, whose operator makes pods, claims,
// certificates between instances and the choice of the primary; a Secret with what the platform decides, a Service that
// leads to the primary, and a NetworkPolicy for the operator.
import type { Secret, Service } from 'kubernetes-types/core/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { DatabaseServer } from '../../../database';
import type { FailoverCluster } from '../../../kubernetes/client/resource_type';
import { resourcesOf } from '../../../workload/kubernetes/deployment';
import { shortDigestOf } from '../../../workload/kubernetes/names';
import { diskBytes } from '../../disk_size';
import {
  APPLIED,
  GRACE_SECONDS,
  LOST_MACHINE_TOLERATIONS,
  serverObjectMetadata,
  type ObjectMetadata,
} from '../../kubernetes/objects';
import type { PodEngine } from '../../kubernetes/pod_engine';
import { HIBERNATION } from '../../kubernetes/server_pods';
import { roles } from '../cluster';
import { sizes } from '../configuration';
import { dataFormatArguments } from '../data';

/** Where docs/KUBERNETES.md installs the operator. */
const OPERATOR_NAMESPACE = 'cnpg-system';
const OPERATOR_LABELS = { 'app.kubernetes.io/name': 'cloudnative-pg' };
const CLUSTER_LABEL = 'cnpg.io/cluster';
export const PRIMARY_LABELS = { 'cnpg.io/instanceRole': 'primary' };
/** Of pods with a server, not of those that make its data. */
export const INSTANCE_LABELS = { 'cnpg.io/podRole': 'instance' };
/** Roles that the operator makes in the server. */
export const OPERATOR_ROLES = ['postgres', 'streaming_replica', 'cnpg_pooler_pgbouncer', 'cnpg_metrics_exporter'];
/** The operator always makes an owner of a first database. This one owns nothing. */
const UNUSED_ROLE = 'platform_unused';
const STATUS_PORT = 8000;
const API_SERVER_PORTS = [443, 6443];
/** Where clouds serve credentials of machines. */
const METADATA_BLOCK = '169.254.0.0/16';

export interface FailoverObjects {
  secret: Secret;
  service: Service;
  policy: NetworkPolicy;
  cluster: FailoverCluster;
}

export function failoverObjects(
  engine: PodEngine,
  server: DatabaseServer,
  { image, storageClass }: { image: string; storageClass: string },
): FailoverObjects {
  const metadata = serverObjectMetadata(engine.prefix, server);
  const spec = clusterSpec(engine, server, { image, storageClass, metadata });
  const annotations = {
    [APPLIED]: shortDigestOf(JSON.stringify([spec, server.running])),
    [HIBERNATION]: server.running ? 'off' : 'on',
    // Its own archive knows no store of ours; without this, each segment would be switched for nothing.
    'cnpg.io/skipWalArchiving': 'enabled',
  };
  return {
    secret: serverSecret(metadata, server),
    service: primaryService(metadata, server),
    policy: operatorPolicy(metadata),
    cluster: { metadata: { ...metadata, annotations }, spec },
  };
}

/** The operator and its instances watch Secrets with the label `cnpg.io/reload`. */
function serverSecret(metadata: ObjectMetadata, { tls, admin_password }: DatabaseServer): Secret {
  const text = {
    ...{ 'tls.crt': tls.certificate, 'tls.key': tls.key, 'ca.crt': tls.authority ?? '' },
    ...{ username: roles.admin, password: admin_password },
  };
  const data = Object.fromEntries(
    Object.entries(text).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  );
  const labels = { ...metadata.labels, 'cnpg.io/reload': 'true' };
  return { metadata: { ...metadata, labels }, type: 'Opaque', data };
}

/** The name of the database, whatever Cluster is behind it. */
function primaryService(metadata: ObjectMetadata, { port }: DatabaseServer): Service {
  const selector = { [CLUSTER_LABEL]: metadata.name, ...PRIMARY_LABELS };
  return {
    metadata: { ...metadata },
    spec: { type: 'ClusterIP', selector, ports: [{ name: 'database', port, targetPort: port, protocol: 'TCP' }] },
  };
}

/** Instances ask the API server who is the primary, and the operator asks them how they are. */
function operatorPolicy(metadata: ObjectMetadata): NetworkPolicy {
  const operator = { matchLabels: { 'kubernetes.io/metadata.name': OPERATOR_NAMESPACE } };
  return {
    metadata: { ...metadata },
    spec: {
      podSelector: { matchLabels: { [CLUSTER_LABEL]: metadata.name } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [{ namespaceSelector: operator, podSelector: { matchLabels: OPERATOR_LABELS } }],
          ports: [{ port: STATUS_PORT, protocol: 'TCP' }],
        },
      ],
      egress: [
        {
          to: [{ ipBlock: { cidr: '0.0.0.0/0', except: [METADATA_BLOCK] } }, { ipBlock: { cidr: '::/0' } }],
          ports: API_SERVER_PORTS.map((port) => ({ port, protocol: 'TCP' })),
        },
      ],
    },
  };
}

function clusterSpec(
  engine: PodEngine,
  server: DatabaseServer,
  { image, storageClass, metadata }: { image: string; storageClass: string; metadata: ObjectMetadata },
): NonNullable<FailoverCluster['spec']> {
  const { name, labels } = metadata;
  return {
    ...{ instances: server.nodes ?? 1, imageName: image, imagePullPolicy: 'IfNotPresent' },
    inheritedMetadata: { labels },
    storage: { size: `${Math.ceil(diskBytes(engine, server) / 2 ** 20)}Mi`, storageClass },
    resources: resourcesOf({ limits: { memory_mb: server.size.memory_mb, cpus: server.size.cpus, disk_mb: null } }),
    // Two on one machine would go with it.
    affinity: { podAntiAffinityType: 'required', tolerations: LOST_MACHINE_TOLERATIONS },
    bootstrap: {
      // The database `postgres` is there: no other one is made.
      initdb: { database: 'postgres', owner: UNUSED_ROLE, options: dataFormatArguments({ series: server.version }) },
    },
    certificates: { serverTLSSecret: name, serverCASecret: name },
    enableSuperuserAccess: false,
    managed: {
      roles: [{ name: roles.admin, login: true, superuser: true, replication: true, passwordSecret: { name } }],
      services: { disabledDefaultServices: ['ro', 'r'] },
    },
    ...{ stopDelay: GRACE_SECONDS, smartShutdownTimeout: 1, switchoverDelay: GRACE_SECONDS },
    ...{ primaryUpdateStrategy: 'unsupervised', primaryUpdateMethod: 'switchover' },
    postgresql: {
      parameters: parametersOf(engine, server),
      pg_hba: accessRules(),
      ...(server.preloaded && { shared_preload_libraries: server.preloaded }),
      // The limit of the storage is set with it.
      enableAlterSystem: true,
      // A commit is acknowledged once a replica has it on its disk, and only who has all of them becomes the primary.
      synchronous: { method: 'any', number: 1, dataDurability: 'required', failoverQuorum: true },
    },
  };
}

/** Beside those that the operator sets (CloudNativePG, "PostgreSQL Configuration", Fixed parameters). */
function parametersOf(engine: PodEngine, server: DatabaseServer): Record<string, string> {
  const settings: Record<string, string | number> = {
    ...{ ssl_min_protocol_version: 'TLSv1.2', password_encryption: 'scram-sha-256' },
    ...{ lc_messages: 'C', timezone: 'UTC', log_timezone: 'UTC' },
    ...sizes({ spec: server, engine }),
    ...{ log_min_duration_statement: '1s', log_lock_waits: 'on' },
    ...{ wal_level: 'replica', max_wal_senders: 10, max_replication_slots: 10, wal_log_hints: 'on' },
  };
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]));
}

/** Those of the operator come before; after them it would let everybody in without TLS. */
function accessRules(): string[] {
  return [
    `hostssl all ${roles.admin} all scram-sha-256`,
    `hostssl replication ${roles.admin} all scram-sha-256`,
    `host all ${[roles.replication, UNUSED_ROLE].join(',')} all reject`,
    'hostssl all all all scram-sha-256',
    'host all all all reject',
  ];
}
