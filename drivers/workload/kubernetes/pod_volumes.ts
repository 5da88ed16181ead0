// Files of pods that are not of their image: documents, and volumes of the application. A volume is on one machine at a
// time, so all pods that use those of an application run on the same one.
import type { DeploymentStrategy } from 'kubernetes-types/apps/v1';
import type { Container, PodSecurityContext, PodSpec } from 'kubernetes-types/core/v1';
import path from 'node:path';
import { claimNameOf } from './claims';
import type { Workload } from '../../workload';
import { LABEL } from './names';

type Volumes = Pick<Workload, 'volumes'>;

const DOCUMENTS = 'platform-documents';
const HAS_VOLUMES = 'true';

/** Of pods: others have to be where they are. */
export function volumeLabels({ volumes }: Volumes): Record<string, string> {
  return volumes.length ? { [LABEL.hasVolumes]: HAS_VOLUMES } : {};
}

/** @param documents name of their Secret */
export function podVolumesOf({ volumes }: Volumes, documents: string | null): Pick<PodSpec, 'volumes'> {
  const all = [
    ...(documents === null ? [] : [{ name: DOCUMENTS, secret: { secretName: documents } }]),
    ...volumes.map(({ id }) => ({ name: claimNameOf(id), persistentVolumeClaim: { claimName: claimNameOf(id) } })),
  ];
  return all.length ? { volumes: all } : {};
}

export function mountsOf({
  volumes,
  documents,
}: Volumes & Pick<Workload, 'documents'>): Pick<Container, 'volumeMounts'> {
  const [first] = documents;
  const all = [
    ...(first ? [{ name: DOCUMENTS, mountPath: path.posix.dirname(first.path), readOnly: true }] : []),
    ...volumes.map(({ id, mount_path }) => ({ name: claimNameOf(id), mountPath: mount_path })),
  ];
  return all.length ? { volumeMounts: all } : {};
}

/** The program, which is not root, may write into its volumes. */
export function fileGroupOf({
  volumes,
  user,
}: Volumes & Pick<Workload, 'user'>): Pick<PodSecurityContext, 'fsGroup' | 'fsGroupChangePolicy'> {
  return volumes.length ? { fsGroup: user.gid, fsGroupChangePolicy: 'OnRootMismatch' } : {};
}

/** With volumes a pod has to be where its predecessor is, and needs the room that this one has. */
export function strategyOf({ volumes }: Volumes): DeploymentStrategy {
  if (volumes.length) return { type: 'Recreate' };
  return { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } };
}

/** The first of them may run anywhere: a pod that matches its own affinity waits for no other. */
export function sameMachine(
  prefix: string,
  { volumes, application_id }: Volumes & Pick<Workload, 'application_id'>,
): Pick<PodSpec, 'affinity'> {
  if (!volumes.length) return {};
  const matchLabels = {
    ...{ [LABEL.installation]: prefix, [LABEL.application]: application_id },
    [LABEL.hasVolumes]: HAS_VOLUMES,
  };
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } };
  return { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
}
