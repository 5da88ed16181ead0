// The objects of a workload: a Deployment, the Secret of its variables and the Secret with which its image is pulled.
import type { Deployment } from 'kubernetes-types/apps/v1';
import type { Container, PodSpec, Probe, ResourceRequirements, Secret } from 'kubernetes-types/core/v1';
import type { Workload, WorkloadHealth } from '../../workload';
import { deploymentNameOf, shortDigestOf, namespaceOf, selectorOf, workloadLabels } from './names';

/** Requests that are on their way while an instance ends: the ingress learns of it within this time. */
const LEAVING_SECONDS = 3;
/** An instance without requests counts as running once it has stayed up for so long. */
const STAYED_UP_SECONDS = 2;
/** Part of the cores that an instance may use which it is sure to get. */
const CPU_SHARE = 0.25;
const MILLI = 1000;
/** For scheduling and for pulling the image, before the time that the health check allows. */
const PULL_SECONDS = 300;
/** Annotation of a pull secret: when its login ends, RFC 3339. */
export const LOGIN_ENDS = 'platform-api/login-ends-at';

export interface WorkloadObjects {
  variables: Secret;
  pull: Secret;
  deployment: Deployment;
}

/** @param prefix KUBERNETES_NAMESPACE_PREFIX */
export function workloadObjects(prefix: string, workload: Workload): WorkloadObjects {
  const namespace = namespaceOf(prefix, workload.project_id);
  const name = deploymentNameOf(workload);
  const labels = workloadLabels(prefix, workload);
  const variables = variablesSecret({ name, namespace, labels }, workload);
  const pull = pullSecret({ name: `${name}-pull`, namespace, labels }, workload);
  return {
    variables,
    pull,
    deployment: {
      metadata: { name, namespace, labels },
      spec: {
        replicas: workload.instances,
        minReadySeconds: workload.health === null ? STAYED_UP_SECONDS : 0,
        revisionHistoryLimit: 0,
        progressDeadlineSeconds: PULL_SECONDS + (workload.health?.start_seconds ?? 0),
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        selector: { matchLabels: selectorOf(prefix, workload) },
        template: {
          metadata: { labels },
          spec: podSpec(workload, { variables: nameOf(variables), pull: nameOf(pull) }, prefix),
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

/** Its name has a digest of the content, so that other variables are another Secret: it never changes. */
function variablesSecret({ name, namespace, labels }: Place, { env }: Workload): Secret {
  const data = Object.fromEntries(Object.entries(env).map(([key, value]) => [key, base64(value)]));
  return {
    metadata: { name: `${name}-${shortDigestOf(JSON.stringify(data))}`, namespace, labels },
    type: 'Opaque',
    immutable: true,
    data,
  };
}

function pullSecret({ name, namespace, labels }: Place, { image }: Workload): Secret {
  const { host, username, password } = image.login;
  const auths = { [host]: { username, password, auth: base64(`${username}:${password}`) } };
  return {
    metadata: { name, namespace, labels, annotations: { [LOGIN_ENDS]: image.login.ends_at } },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': base64(JSON.stringify({ auths })) },
  };
}

function podSpec(workload: Workload, secrets: { variables: string; pull: string }, prefix: string): PodSpec {
  const { user, shutdown_grace_seconds, port } = workload;
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: shutdown_grace_seconds + (port === null ? 0 : LEAVING_SECONDS),
    imagePullSecrets: [{ name: secrets.pull }],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user.uid,
      runAsGroup: user.gid,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: selectorOf(prefix, workload) },
      },
    ],
    containers: [container(workload, secrets.variables)],
  };
}

function container(workload: Workload, variables: string): Container {
  const { image, command, port, health, process_type } = workload;
  return {
    name: process_type,
    image: image.reference,
    imagePullPolicy: 'IfNotPresent',
    ...(command !== null && { command }),
    envFrom: [{ secretRef: { name: variables } }],
    env: [{ name: 'SVC_INSTANCE_ID', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    ...(port !== null && {
      ports: [{ name: 'http', containerPort: port }],
      lifecycle: { preStop: { sleep: { seconds: LEAVING_SECONDS } } },
    }),
    ...(health !== null && probesOf(health, port)),
    resources: resourcesOf(workload),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
}

/** Memory is reserved as a whole: a pod above its request is the first to be evicted. */
function resourcesOf({ limits: { memory_mb, cpus, disk_mb } }: Workload): ResourceRequirements {
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
  if (check.type === 'command') return { exec: { command: check.command } };
  if (check.type === 'tcp') return { tcpSocket: { port: port ?? 0 } };
  return { httpGet: { path: check.path, port: port ?? 0, httpHeaders: [{ name: 'Host', value: check.host }] } };
}

function nameOf({ metadata }: Secret): string {
  return metadata?.name ?? '';
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
