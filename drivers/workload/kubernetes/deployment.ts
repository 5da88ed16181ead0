// The objects of a workload: a Deployment, the Secret of its variables and the Secret with which its image is pulled.
import type { Deployment } from 'kubernetes-types/apps/v1';
import type { Container, PodSpec, Probe, ResourceRequirements, Secret } from 'kubernetes-types/core/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import { isIPv6 } from 'node:net';
import path from 'node:path';
import type { Workload, WorkloadHealth, WorkloadImage } from '../../workload';
import { fileGroupOf, mountsOf, podVolumesOf, sameMachine, strategyOf, volumeLabels } from './pod_volumes';
import { containerNameOf, deploymentNameOf, shortDigestOf, namespaceOf, selectorOf, workloadLabels } from './names';

/** Requests that are on their way while an instance ends: the ingress learns of it within this time. */
const LEAVING_SECONDS = 3;
/** An instance without requests counts as running once it has stayed up for so long. */
const STAYED_UP_SECONDS = 2;
/** Part of the cores that an instance may use which it is sure to get. */
const CPU_SHARE = 0.25;
const MILLI = 1000;
/** For scheduling and for pulling the image, before the time that the health check allows. */
export const PULL_SECONDS = 300;
/** A machine that does not respond keeps its instances for so long, then they start elsewhere. Clusters say 300. */
const LOST_MACHINE_SECONDS = 30;
/** Annotation of a pull secret: when its login ends, RFC 3339. */
const LOGIN_ENDS = 'platform-api/login-ends-at';
/** For which registry it is, and what was applied with it. */
const LOGIN_HOST = 'platform-api/login-host';
const LOGIN_APPLIED = 'platform-api/login-applied';
/** A login for pulling is replaced when it ends within this time. */
const LOGIN_LEFT_MS = 45 * 86_400_000;

export interface WorkloadObjects {
  variables: Secret;
  pull: Secret;
  /** null: the workload has none. */
  documents: Secret | null;
  /** null: its one instance may be moved at any time. */
  disruption: PodDisruptionBudget | null;
  /** null: its pods need no more than those of the project may. */
  egress: NetworkPolicy | null;
  deployment: Deployment;
}

/** @param prefix KUBERNETES_NAMESPACE_PREFIX */
export function workloadObjects(prefix: string, workload: Workload): WorkloadObjects {
  const namespace = namespaceOf(prefix, workload.project_id);
  const name = deploymentNameOf(workload);
  const labels = workloadLabels(prefix, workload);
  const variables = variablesSecret({ name, namespace, labels }, workload.env);
  const pull = pullSecret({ name: `${name}-pull`, namespace, labels }, workload.image);
  const documents = documentsSecret({ name: `${name}-files`, namespace, labels }, workload);
  const secretNames = {
    ...{ variables: nameOf(variables), pull: nameOf(pull) },
    documents: documents && nameOf(documents),
  };
  return {
    ...{ variables, pull, documents },
    disruption: disruptionBudget({ name, namespace, labels }, workload, selectorOf(prefix, workload)),
    egress: egressPolicy({ name, namespace, labels }, workload.reaches, selectorOf(prefix, workload)),
    deployment: {
      metadata: { name, namespace, labels },
      spec: {
        replicas: workload.instances,
        minReadySeconds: workload.health === null ? STAYED_UP_SECONDS : 0,
        revisionHistoryLimit: 0,
        progressDeadlineSeconds: PULL_SECONDS + (workload.health?.start_seconds ?? 0),
        strategy: strategyOf(workload),
        selector: { matchLabels: selectorOf(prefix, workload) },
        template: {
          metadata: { labels: { ...labels, ...volumeLabels(workload) } },
          spec: podSpec(workload, secretNames, prefix),
        },
      },
    },
  };
}

interface Place {
  name: string;
  namespace: string;
  labels: Record<string, string>;
}

/** Not immutable: what changes in it, as authorities of the system, is no reason to start instances anew. */
export function documentsSecret(
  { name, namespace, labels }: Place,
  { documents }: Pick<Workload, 'documents'>,
): Secret | null {
  if (documents.length === 0) return null;
  const data = Object.fromEntries(documents.map(({ path: file, text }) => [path.posix.basename(file), base64(text)]));
  return { metadata: { name, namespace, labels }, type: 'Opaque', data };
}

/** Machines are emptied one instance at a time. With fewer instances later it forbids nothing, and may stay. */
function disruptionBudget(
  { name, namespace, labels }: Place,
  { instances }: Workload,
  matchLabels: Record<string, string>,
): PodDisruptionBudget | null {
  if (instances < 2) return null;
  return { metadata: { name, namespace, labels }, spec: { maxUnavailable: 1, selector: { matchLabels } } };
}

/** For the pods of one workload alone: another application of the project has databases of its own. */
export function egressPolicy(
  { name, namespace, labels }: Place,
  reaches: Workload['reaches'],
  matchLabels: Record<string, string>,
): NetworkPolicy | null {
  if (reaches.length === 0) return null;
  return {
    metadata: { name, namespace, labels },
    spec: {
      podSelector: { matchLabels },
      policyTypes: ['Egress'],
      egress: reaches.map(({ address, port }) => ({
        to: [{ ipBlock: { cidr: `${address}/${isIPv6(address) ? 128 : 32}` } }],
        ports: [{ port, protocol: 'TCP' }],
      })),
    },
  };
}

/** Its name has a digest of the content, so that other variables are another Secret: it never changes. */
export function variablesSecret({ name, namespace, labels }: Place, env: Record<string, string>): Secret {
  const data = Object.fromEntries(Object.entries(env).map(([key, value]) => [key, base64(value)]));
  return {
    metadata: { name: `${name}-${shortDigestOf(JSON.stringify(data))}`, namespace, labels },
    type: 'Opaque',
    immutable: true,
    data,
  };
}

export function pullSecret({ name, namespace, labels }: Place, { login }: WorkloadImage): Secret {
  const { host, username, password } = login;
  const auths = { [host]: { username, password, auth: base64(`${username}:${password}`) } };
  const data = { '.dockerconfigjson': base64(JSON.stringify({ auths })) };
  const annotations = {
    ...{ [LOGIN_ENDS]: login.ends_at, [LOGIN_HOST]: host },
    [LOGIN_APPLIED]: shortDigestOf(JSON.stringify(data)),
  };
  return { metadata: { name, namespace, labels, annotations }, type: 'kubernetes.io/dockerconfigjson', data };
}

/** Whether the login of a pull secret is good for long, for the same registry, and as it was applied. */
export function isLoginFresh(present: Secret | null, desired: Secret): boolean {
  const { annotations = {} } = present?.metadata ?? {};
  return (
    Date.parse(annotations[LOGIN_ENDS] ?? '') - Date.now() > LOGIN_LEFT_MS &&
    annotations[LOGIN_HOST] === desired.metadata?.annotations?.[LOGIN_HOST] &&
    annotations[LOGIN_APPLIED] === shortDigestOf(JSON.stringify(present?.data))
  );
}

interface SecretNames {
  variables: string;
  pull: string;
  documents: string | null;
}

function podSpec(workload: Workload, secrets: SecretNames, prefix: string): PodSpec {
  const { user, shutdown_grace_seconds, port } = workload;
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(!workload.is_first_process && { shareProcessNamespace: true }),
    terminationGracePeriodSeconds: shutdown_grace_seconds + (port === null ? 0 : LEAVING_SECONDS),
    ...(workload.priority_class !== null && { priorityClassName: workload.priority_class }),
    imagePullSecrets: [{ name: secrets.pull }],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user.uid,
      runAsGroup: user.gid,
      ...fileGroupOf(workload),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    tolerations: ['not-ready', 'unreachable'].map((taint) => ({
      ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute' },
      tolerationSeconds: LOST_MACHINE_SECONDS,
    })),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: selectorOf(prefix, workload) },
      },
    ],
    containers: [container(workload, secrets.variables)],
    ...podVolumesOf(workload, secrets.documents),
    ...sameMachine(prefix, workload),
  };
}

function container(workload: Workload, variables: string): Container {
  const { image, command, port, health } = workload;
  return {
    name: containerNameOf(workload),
    image: image.reference,
    imagePullPolicy: 'IfNotPresent',
    ...(command !== null && { command: literalWords(command) }),
    envFrom: [{ secretRef: { name: variables } }],
    env: [{ name: 'SVC_INSTANCE_ID', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    ...(port !== null && {
      ports: [{ name: 'http', containerPort: port }],
      lifecycle: { preStop: { sleep: { seconds: LEAVING_SECONDS } } },
    }),
    ...(health !== null && probesOf(health, port)),
    ...mountsOf(workload),
    resources: resourcesOf(workload),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
}

/** Memory is reserved as a whole: a pod above its request is the first to be evicted. */
export function resourcesOf({ limits }: Pick<Workload, 'limits'>): ResourceRequirements {
  const { memory_mb, cpus, disk_mb } = limits;
  const memory = `${memory_mb}Mi`;
  const disk: Record<string, string> = disk_mb === null ? {} : { 'ephemeral-storage': `${disk_mb}Mi` };
  return {
    requests: { memory, cpu: `${Math.max(1, Math.round(cpus * CPU_SHARE * MILLI))}m` },
    limits: { memory, cpu: `${Math.max(1, Math.round(cpus * MILLI))}m`, ...disk },
  };
}

/** Failures restart the instance, as on a host; meanwhile it gets no requests. */
function probesOf(
  health: WorkloadHealth,
  port: number | null,
): Pick<Container, 'startupProbe' | 'readinessProbe' | 'livenessProbe'> {
  const action = actionOf(health, port);
  const timeoutSeconds = health.timeout_seconds;
  const running = {
    ...action,
    timeoutSeconds,
    periodSeconds: health.interval_seconds,
    failureThreshold: health.failure_threshold,
  };
  return {
    startupProbe: { ...action, timeoutSeconds, periodSeconds: 1, failureThreshold: Math.max(1, health.start_seconds) },
    readinessProbe: running,
    livenessProbe: running,
  };
}

function actionOf({ check }: WorkloadHealth, port: number | null): Probe {
  if (check.type === 'command') return { exec: { command: literalWords(check.command) } };
  if (check.type === 'tcp') return { tcpSocket: { port: port ?? 0 } };
  return { httpGet: { path: check.path, port: port ?? 0, httpHeaders: [{ name: 'Host', value: check.host }] } };
}

/** Words as they are: a cluster replaces `$(NAME)` by a variable, and `$$` by `$`. */
export function literalWords(words: readonly string[]): string[] {
  return words.map((word) => word.replaceAll('$', '$$$$'));
}

function nameOf({ metadata }: Secret): string {
  return metadata?.name ?? '';
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
