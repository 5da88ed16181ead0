// The objects of a task: a Job with one pod, the Secret of its variables and the Secret with which its image is pulled.
import type { Job } from 'kubernetes-types/batch/v1';
import type { Container, PodSpec, Secret } from 'kubernetes-types/core/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { Task, TaskRef } from '../../task';
import {
  documentsSecret,
  egressPolicy,
  literalWords,
  PULL_SECONDS,
  pullSecret,
  resourcesOf,
  variablesSecret,
} from '../deployment';
import { fileGroupOf, mountsOf, podVolumesOf, sameMachine, volumeLabels } from '../pod_volumes';
import { LABEL, namespaceOf, objectNameOf, projectLabels } from '../names';
import { INPUT_DIRECTORY, startScript } from './script';

/** Of a task that nobody removes: its output and its end can be read for so long. */
const KEPT_SECONDS = 7 * 86_400;
/** Beside the times of its parts. */
const SPARE_SECONDS = 60;
/** An interactive shell gets a hang-up before, and ignores the signal that the cluster sends. */
const TERMINAL_GRACE_SECONDS = 2;
const INPUT_VOLUME = 'input';

interface TaskObjects {
  variables: Secret;
  pull: Secret;
  documents: Secret | null;
  egress: NetworkPolicy | null;
  job: Job;
}

/** Its name is the id, so it is created once and found again. */
export function taskKeyOf(prefix: string, { id, project_id }: TaskRef): { namespace: string; name: string } {
  return { namespace: namespaceOf(prefix, project_id), name: objectNameOf(id) };
}

/** Selects the objects and the pod of one task. */
export function taskSelectorOf(prefix: string, { id }: Pick<TaskRef, 'id'>): Record<string, string> {
  return { [LABEL.installation]: prefix, [LABEL.run]: id };
}

/** @param prefix KUBERNETES_NAMESPACE_PREFIX */
export function taskObjects(prefix: string, task: Task): TaskObjects {
  const { namespace, name } = taskKeyOf(prefix, task);
  const labels = taskLabels(prefix, task);
  const variables = variablesSecret({ name, namespace, labels }, task.env);
  const pull = pullSecret({ name: `${name}-pull`, namespace, labels }, task.image);
  const documents = documentsSecret({ name: `${name}-files`, namespace, labels }, task);
  const grace = graceSecondsOf(task);
  const names = [variables, pull, documents].map((secret) => secret?.metadata?.name ?? null);
  return {
    ...{ variables, pull, documents },
    egress: egressPolicy({ name, namespace, labels }, task.reaches, taskSelectorOf(prefix, task)),
    job: {
      metadata: { name, namespace, labels },
      spec: {
        backoffLimit: 0,
        completions: 1,
        parallelism: 1,
        // The deadline of the pod ends the program, and keeps its output; this one removes the pod.
        activeDeadlineSeconds: podSeconds(task) + grace + SPARE_SECONDS,
        ttlSecondsAfterFinished: KEPT_SECONDS,
        template: {
          metadata: { labels: { ...labels, ...volumeLabels(task) } },
          spec: podSpec(prefix, task, names),
        },
      },
    },
  };
}

function taskLabels(prefix: string, task: Task): Record<string, string> {
  return {
    ...projectLabels(prefix, task.project_id),
    [LABEL.name]: task.application_name,
    [LABEL.component]: 'run',
    [LABEL.application]: task.application_id,
    ...(task.preview_id !== null && { [LABEL.preview]: task.preview_id }),
    [LABEL.release]: task.release_id,
    [LABEL.run]: task.id,
  };
}

/** Counted by the cluster from before the image is pulled; the driver sets the exact time once the program runs. */
function podSeconds({ timeout_seconds }: Task): number {
  return timeout_seconds + PULL_SECONDS;
}

function graceSecondsOf({ input, shutdown_grace_seconds }: Task): number {
  return input === 'terminal' ? TERMINAL_GRACE_SECONDS : shutdown_grace_seconds;
}

/** @param names of the Secrets: variables, pull, documents */
function podSpec(prefix: string, task: Task, [variables, pull, documents = null]: (string | null)[]): PodSpec {
  const { user, input } = task;
  const { volumes = [] } = podVolumesOf(task, documents);
  return {
    restartPolicy: 'Never',
    activeDeadlineSeconds: podSeconds(task),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // Its program is not the first process of its namespace, which signals without a handler do not reach.
    shareProcessNamespace: true,
    terminationGracePeriodSeconds: graceSecondsOf(task),
    imagePullSecrets: [{ name: pull ?? '' }],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: user.uid,
      runAsGroup: user.gid,
      ...fileGroupOf(task),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [container(task, variables ?? '')],
    volumes: [...volumes, ...(input === null ? [] : [{ name: INPUT_VOLUME, emptyDir: {} }])],
    ...sameMachine(prefix, task),
  };
}

function container(task: Task, variables: string): Container {
  const { image, command, input } = task;
  const { volumeMounts = [] } = mountsOf(task);
  return {
    name: 'run',
    image: image.reference,
    imagePullPolicy: 'IfNotPresent',
    command: literalWords(input === null ? command : startScript(command, input)),
    envFrom: [{ secretRef: { name: variables } }],
    ...(input === 'terminal' && { stdin: true, tty: true }),
    volumeMounts: [...volumeMounts, ...(input === null ? [] : [{ name: INPUT_VOLUME, mountPath: INPUT_DIRECTORY }])],
    resources: resourcesOf(task),
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
}
