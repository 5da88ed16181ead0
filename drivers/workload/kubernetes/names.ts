// Names and labels of the platform's objects in a cluster.
import { createHash } from 'node:crypto';
import { namespaceOf, objectNameOf } from '../../../core/cluster_names';
import { FIELD_MANAGER } from '../../kubernetes/client/client';
import type { Workload, WorkloadRef } from '../../workload';

export { namespaceOf, objectNameOf };

export const LABEL = {
  managedBy: 'app.kubernetes.io/managed-by',
  name: 'app.kubernetes.io/name',
  component: 'app.kubernetes.io/component',
  /** Which installation: its namespace prefix. Objects without it are somebody else's. */
  installation: 'platform-api/installation',
  project: 'platform-api/project',
  application: 'platform-api/application',
  preview: 'platform-api/preview',
  release: 'platform-api/release',
  workload: 'platform-api/workload',
  run: 'platform-api/run',
  volume: 'platform-api/volume',
  database: 'platform-api/database',
  /** Of pods that use volumes of their application. */
  hasVolumes: 'platform-api/has-volumes',
} as const;

/** Room for the suffixes that a cluster adds to the name of a Deployment: `-7d9f8c6b5d-x2x4z`. */
const NAME_MAX = 46;

/** Annotation of a namespace: the id of the installation that it is of. Prefixes may be the same by mistake. */
export const INSTALLATION_ID = 'platform-api/installation-id';

/** Name of the Deployment: `shop-web-1a2b3c4d`. The last part is of the id, so a renamed application keeps it apart. */
export function deploymentNameOf({ id, application_name, process_type }: Workload): string {
  const own = shortDigestOf(id);
  const readable = `${application_name}-${process_type}`.toLowerCase().replaceAll(/[^a-z0-9-]+/g, '-');
  const cut = readable.slice(0, NAME_MAX - own.length - 1).replaceAll(/^-+|-+$/g, '');
  return `${/^[a-z]/.test(cut) ? cut : `app-${cut}`}-${own}`;
}

/** Process types may have `_`, and any of `_` and `-` at their end, which names of containers must not have. */
export function containerNameOf({ process_type }: Pick<Workload, 'process_type'>): string {
  return process_type.replaceAll('_', '-').replace(/-+$/, '');
}

/** Eight characters that stand for a text. */
export function shortDigestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

export function projectLabels(prefix: string, projectId: string): Record<string, string> {
  return { [LABEL.managedBy]: FIELD_MANAGER, [LABEL.installation]: prefix, [LABEL.project]: projectId };
}

export function workloadLabels(prefix: string, workload: Workload): Record<string, string> {
  return {
    ...projectLabels(prefix, workload.project_id),
    [LABEL.name]: workload.application_name,
    // Values of labels end with a letter or a digit.
    [LABEL.component]: workload.process_type.replace(/[_-]+$/, ''),
    [LABEL.application]: workload.application_id,
    ...(workload.preview_id !== null && { [LABEL.preview]: workload.preview_id }),
    [LABEL.release]: workload.release_id,
    [LABEL.workload]: workload.id,
  };
}

/** As in a label selector. '' stands for any value. */
export function selectorText(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([name, value]) => (value === '' ? name : `${name}=${value}`))
    .join(',');
}

/** Selects the objects and pods of one workload. */
export function selectorOf(prefix: string, { id }: Pick<WorkloadRef, 'id'>): Record<string, string> {
  return { [LABEL.installation]: prefix, [LABEL.workload]: id };
}
