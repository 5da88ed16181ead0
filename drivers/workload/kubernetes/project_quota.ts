// What the quotas of a project mean for its namespace: a ceiling above all that they allow at a time, and limits for
// pods that somebody else starts without any. What an application may have is decided before it reaches the cluster.
import type { LimitRange, ResourceQuota } from 'kubernetes-types/core/v1';
import type { DriverContext } from '../../../core/driver';
import { hasCode, shorten } from '../../kubernetes/client/failure';
import { parseQuantity } from '../../kubernetes/client/quantity';
import { resourceTypes } from '../../kubernetes/client/resource_type';
import { namespaceOf, projectLabels } from './names';
import { applyOver, applyOwn, keyOf, type OwnObjects } from './own_object';

/** Of one project. null: unlimited. */
export interface ProjectRoom {
  /** Instances of all releases that may be there at a time, and runs. */
  pods: number | null;
  volumes: number | null;
  volume_storage_gb: number | null;
  largest: ContainerSize;
  smallest: ContainerSize;
}

interface ContainerSize {
  memory_mb: number;
  cpus: number;
}

/** What is being removed counts until it has gone, beside what takes its place. */
const BESIDE = 2;
const NAME = 'platform';

/**
 * Repeatable. Credentials from before these rights were needed do without: `doctor` names what is missing.
 * @throws DriverError `conflict` where somebody else has the names
 */
export async function ensureProjectQuota(
  own: OwnObjects & { room: ProjectRoom },
  projectId: string,
  ctx: DriverContext,
): Promise<void> {
  const { client, prefix, room } = own;
  const quota = projectQuota(prefix, projectId, room);
  try {
    const present = await client.get(resourceTypes.resourceQuotas, keyOf(quota), ctx);
    const hard = aboveUse(quota.spec?.hard ?? {}, present?.status?.used ?? {});
    await applyOver(own, resourceTypes.resourceQuotas, present, { ...quota, spec: { hard } }, ctx);
    await applyOwn(own, resourceTypes.limitRanges, projectLimits(prefix, projectId, room), ctx);
  } catch (error) {
    if (!hasCode(error, 'forbidden')) throw error;
  }
}

export function projectQuota(prefix: string, projectId: string, room: ProjectRoom): ResourceQuota {
  const { pods, volumes, volume_storage_gb, largest } = room;
  return {
    metadata: metadataOf(prefix, projectId),
    spec: {
      hard: {
        ...(pods !== null && {
          pods: `${pods}`,
          'limits.memory': `${pods * largest.memory_mb}Mi`,
          'limits.cpu': `${Math.ceil(pods * largest.cpus)}`,
        }),
        ...(volumes !== null && { persistentvolumeclaims: `${BESIDE * volumes}` }),
        ...(volume_storage_gb !== null && { 'requests.storage': `${BESIDE * volume_storage_gb}Gi` }),
      },
    },
  };
}

/** For containers that name no limits, which the quota would refuse. Those of the platform name all of them. */
export function projectLimits(prefix: string, projectId: string, { smallest }: ProjectRoom): LimitRange {
  const size = { memory: `${smallest.memory_mb}Mi`, cpu: `${Math.round(smallest.cpus * 1000)}m` };
  return {
    metadata: metadataOf(prefix, projectId),
    spec: { limits: [{ type: 'Container', default: size, defaultRequest: size }] },
  };
}

/** Quotas that were lowered take nothing away: pods of a machine that was lost must be able to start elsewhere. */
export function aboveUse(hard: Record<string, string>, used: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(hard).map(([resource, limit]) => {
      const needed = BESIDE * (parseQuantity(used[resource] ?? '') ?? 0);
      return [resource, needed > (parseQuantity(limit) ?? 0) ? `${Math.ceil(needed)}` : limit];
    }),
  );
}

function metadataOf(prefix: string, projectId: string): ResourceQuota['metadata'] {
  return { name: NAME, namespace: namespaceOf(prefix, projectId), labels: projectLabels(prefix, projectId) };
}

/** What an admission controller has said of pods, as a sentence. @param whose they are: `its instances` */
export function refusalSentence(message: string, whose: string): string {
  // Each attempt is for a pod of another name: what is the same reason says the same.
  const said = shorten(message)
    .replace(/^pods "[^"]*" is forbidden: /, '')
    .replace(/\.$/, '');
  const found = /exceeded quota: (.+?), requested: (.+?), used: (.+?), limited: (.+)$/.exec(said);
  if (!found) return `The cluster refuses ${whose}: ${said}.`;
  const [, quota, requested = '', used = '', limited = ''] = found;
  const [uses, limits] = [amountsOf(used), amountsOf(limited)];
  const each = [...amountsOf(requested)].map(
    ([resource, amount]) => `${resource}: ${amount} more, ${uses.get(resource)} of ${limits.get(resource)} in use`,
  );
  const amounts = each.join('; ');
  return `The cluster refuses ${whose}: the quota \`${quota}\` of its namespace would be exceeded (${amounts}).`;
}

/** From `limits.memory=1Gi,pods=1`. */
function amountsOf(list: string): Map<string, string> {
  return new Map(list.split(',').map((each) => each.trim().split('=') as [string, string]));
}
