// The objects of a database server in a pod: a StatefulSet of one, the Secret of its configuration, its Service, and a
// PersistentVolumeClaim for its data. Nothing else of the cluster reaches it but pods of its project and the platform
// (drivers/workload/kubernetes/namespace.ts).
import type { StatefulSet } from 'kubernetes-types/apps/v1';
import type { PersistentVolumeClaim, PodSpec, Secret, Service, Toleration } from 'kubernetes-types/core/v1';
import { shortDigestOf, LABEL, namespaceOf, objectNameOf, projectLabels } from '../../workload/kubernetes/names';
import { literalWords, resourcesOf } from '../../workload/kubernetes/deployment';
import type { DatabaseServer } from '../../database';

/** Where the server finds its files in the pod. */
export const POD_DATA = '/data';
export const POD_CONF = '/etc/platform';

/** What is to run in a pod, of any engine. */
export interface PodProgram {
  image: string;
  port: number;
  command: readonly string[];
  /** Configuration files by name, with secrets. */
  files: Record<string, string>;
  /** A change of it restarts the server; other changes of the files don't. */
  digest: string;
  /** Name of the claim with its data. */
  claim: string;
  /** Files of the image that are replaced: names of configuration files by path. */
  replacing?: Record<string, string>;
  /** Runs in the pod before SIGTERM, which some servers take as leave to wait for their clients. */
  beforeStop?: readonly string[];
  /** It shares memory through files of /dev/shm, which has 64 MiB unless it is asked for. */
  sharesMemory?: true;
}

/** Digest of what was applied last. */
export const APPLIED = 'platform-api/applied';
/** Annotation of pods: `PodProgram.digest`. */
const CONFIGURED = 'platform-api/configured';
export const CONTAINER = 'database';
/** Of all servers; images need not have it. */
export const USER = 10_001;
/** After SIGTERM it writes what it has in memory. */
export const GRACE_SECONDS = 60;
/** A machine that does not respond: as of other pods (docs/KUBERNETES.md, "When a machine is lost"). */
const LOST_MACHINE_SECONDS = 30;
export const LOST_MACHINE_TOLERATIONS: readonly Toleration[] = ['not-ready', 'unreachable'].map((taint) => ({
  ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute' },
  tolerationSeconds: LOST_MACHINE_SECONDS,
}));
/** A server that loads its data accepts connections; one that does not come up is restarted after this time. */
const STARTED_WITHIN_SECONDS = 600;

export function databaseLabels(prefix: string, projectId: string, serverId: string): Record<string, string> {
  return { ...projectLabels(prefix, projectId), [LABEL.database]: serverId };
}

/** The project of a server. @throws Error where its spec names none */
export function projectIdOf({ network }: Pick<DatabaseServer, 'network'>): string {
  if (network === undefined) throw new Error('a database server in a cluster needs its project');
  return network;
}

export interface ObjectMetadata {
  name: string;
  namespace: string;
  labels: Record<string, string>;
}

export function serverObjectMetadata(prefix: string, server: Pick<DatabaseServer, 'id' | 'network'>): ObjectMetadata {
  const projectId = projectIdOf(server);
  return {
    name: objectNameOf(server.id),
    namespace: namespaceOf(prefix, projectId),
    labels: databaseLabels(prefix, projectId, server.id),
  };
}

export function configurationSecret(place: ObjectMetadata, { files }: PodProgram): Secret {
  const data = Object.fromEntries(
    Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  );
  return { metadata: { ...place }, type: 'Opaque', data };
}

export function serverService(place: ObjectMetadata, { port }: PodProgram): Service {
  const selector = selectorOf(place);
  return {
    metadata: { ...place },
    // Of one family, as most clusters are; the cluster chooses the address.
    spec: { type: 'ClusterIP', selector, ports: [{ name: CONTAINER, port, targetPort: port, protocol: 'TCP' }] },
  };
}

/** @param bytes of the disk: for the data, and what the engine writes beside them */
export function dataClaim(
  { namespace, labels }: ObjectMetadata,
  name: string,
  { storageClassName, bytes }: { storageClassName: string; bytes: number },
): PersistentVolumeClaim {
  return {
    metadata: { name, namespace, labels },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: `${Math.ceil(bytes / 2 ** 20)}Mi` } },
    },
  };
}

/** One server at a time: a StatefulSet starts no second pod while the first one may still write. */
export function serverStatefulSet(place: ObjectMetadata, server: DatabaseServer, program: PodProgram): StatefulSet {
  const spec: StatefulSet['spec'] = {
    serviceName: place.name,
    replicas: server.running ? 1 : 0,
    revisionHistoryLimit: 1,
    selector: { matchLabels: selectorOf(place) },
    template: {
      metadata: { labels: place.labels, annotations: { [CONFIGURED]: program.digest } },
      spec: podSpec(place.name, server, program),
    },
  };
  return { metadata: { ...place, annotations: { [APPLIED]: shortDigestOf(JSON.stringify(spec)) } }, spec };
}

function podSpec(name: string, { size }: DatabaseServer, program: PodProgram): PodSpec {
  return {
    ...podBasics(),
    terminationGracePeriodSeconds: GRACE_SECONDS,
    tolerations: [...LOST_MACHINE_TOLERATIONS],
    containers: [
      {
        name: CONTAINER,
        image: program.image,
        imagePullPolicy: 'IfNotPresent',
        command: literalWords(program.command),
        workingDir: POD_DATA,
        ports: [{ name: CONTAINER, containerPort: program.port }],
        // No liveness probe: a server that is busy must not be killed. No readiness probe: there is no other server,
        // and the log of MariaDB has a line for each.
        startupProbe: { tcpSocket: { port: program.port }, periodSeconds: 1, failureThreshold: STARTED_WITHIN_SECONDS },
        ...(program.beforeStop && { lifecycle: { preStop: { exec: { command: [...program.beforeStop] } } } }),
        // What it said last is in its state, where it failed.
        terminationMessagePolicy: 'FallbackToLogsOnError',
        volumeMounts: [
          { name: 'data', mountPath: POD_DATA },
          { name: 'configuration', mountPath: POD_CONF, readOnly: true },
          ...Object.entries(program.replacing ?? {}).map(([mountPath, subPath]) => ({
            ...{ name: 'configuration', mountPath, subPath, readOnly: true },
          })),
          ...(program.sharesMemory ? [{ name: 'memory', mountPath: '/dev/shm' }] : []),
        ],
        resources: resourcesOf({ limits: { memory_mb: size.memory_mb, cpus: size.cpus, disk_mb: null } }),
        securityContext: containerSecurity(),
      },
    ],
    volumes: [
      { name: 'data', persistentVolumeClaim: { claimName: program.claim } },
      // Servers refuse keys that others may read.
      { name: 'configuration', secret: { secretName: name, defaultMode: 0o440 } },
      // Part of the memory of its package.
      ...(program.sharesMemory
        ? [{ name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: `${size.memory_mb}Mi` } }]
        : []),
    ],
  };
}

/** What all pods of databases have, for the profile `restricted`. */
export function podBasics(): Pick<PodSpec, 'automountServiceAccountToken' | 'enableServiceLinks' | 'securityContext'> {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: {
      ...{ runAsNonRoot: true, runAsUser: USER, runAsGroup: USER },
      ...{ fsGroup: USER, fsGroupChangePolicy: 'OnRootMismatch' },
      seccompProfile: { type: 'RuntimeDefault' },
    },
  };
}

export function containerSecurity(): NonNullable<PodSpec['containers'][number]['securityContext']> {
  return { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
}

/** Never changes: that of a StatefulSet cannot be. */
function selectorOf({ labels }: ObjectMetadata): Record<string, string> {
  return { [LABEL.installation]: labels[LABEL.installation] ?? '', [LABEL.database]: labels[LABEL.database] ?? '' };
}
