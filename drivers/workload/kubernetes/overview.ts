// All objects of workloads, read at once. Whoever has hundreds of workloads asks for each of them about once a minute,
// and nearly always nothing is to be done: four lists say so for all of them, where each would take a request for each
// of its objects and an apply.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Deployment } from 'kubernetes-types/apps/v1';
import type { Secret } from 'kubernetes-types/core/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import type { DriverContext } from '../../../core/driver';
import { parseQuantity } from '../../kubernetes/client/quantity';
import { resourceTypes, type KubernetesObject, type ResourceType } from '../../kubernetes/client/resource_type';
import { isLoginFresh, type WorkloadObjects } from './deployment';
import { isSameAsApplied } from './drift';
import { LABEL, selectorText } from './names';
import { isOwn, keyOf, OF_WORKLOADS, type OwnObjects } from './own_object';

export interface Overview {
  /**
   * The Deployment, where all objects are as they should be; null: they are not, or it is not known.
   * @throws DriverError
   */
  unchanged(id: string, objects: WorkloadObjects, ctx: DriverContext): Promise<Deployment | null>;
  /** The workload may be another from now on: an older overview says nothing of it. */
  forget(id: string): void;
}

const AGE_MS_MAX = 15_000;
/** A workload that was changed is looked at by itself for so long: its pods are on their way. */
const CHANGING_MS = 30_000;

type Objects = Map<string, KubernetesObject>;

export function openOverview(own: OwnObjects, now = () => performance.now()): Overview {
  const changedAt = new Map<string, number>();
  let last: { at: number; objects: Promise<Objects> } | null = null;
  const read = (ctx: DriverContext): Promise<Objects> => {
    const at = now();
    if (last !== null && at - last.at < AGE_MS_MAX) return last.objects;
    for (const [id, time] of changedAt) if (at - time > CHANGING_MS + AGE_MS_MAX) changedAt.delete(id);
    const reading = { at, objects: readAll(own, ctx) };
    const drop = (): void => void (last === reading && (last = null));
    last = reading;
    reading.objects.catch(drop);
    setTimeout(drop, AGE_MS_MAX).unref();
    return reading.objects;
  };
  return {
    async unchanged(id, objects, ctx) {
      if (now() - (changedAt.get(id) ?? -Infinity) < CHANGING_MS) return null;
      return unchangedIn(own, await read(ctx), objects);
    },
    forget: (id) => void changedAt.set(id, now()),
  };
}

async function readAll({ client, prefix }: OwnObjects, ctx: DriverContext): Promise<Objects> {
  const labelSelector = `${selectorText({ [LABEL.installation]: prefix })},${LABEL.workload}`;
  const found: Objects = new Map();
  for (const type of OF_WORKLOADS) {
    const pageSize = type === resourceTypes.secrets ? SECRETS_OF_PAGE : undefined;
    const listed = await client.list<KubernetesObject>(type, { labelSelector }, ctx, { pageSize, keep: withoutBulk });
    for (const object of listed.items) found.set(textOf(type, object), object);
  }
  return found;
}

/** Secrets with certificates of databases have 300 KB each: an overview of them is not to hold all of it. */
const SECRETS_OF_PAGE = 50;
/** Logins and ordinary variables are shorter. */
const VALUE_LENGTH_MAX = 16_384;

function withoutBulk(object: KubernetesObject & Pick<Secret, 'data'>): KubernetesObject {
  delete object.metadata?.managedFields;
  if (object.data) object.data = briefOf(object.data);
  return object;
}

/** Digests in the place of long values. */
function briefOf(data: Record<string, string> = {}): Record<string, string> {
  const brief = Object.entries(data).map(([name, value]) => [
    name,
    value.length > VALUE_LENGTH_MAX ? createHash('sha256').update(value).digest('base64') : value,
  ]);
  return Object.fromEntries(brief) as Record<string, string>;
}

function textOf<T extends KubernetesObject>({ kind }: ResourceType<T>, object: KubernetesObject): string {
  const { namespace, name } = keyOf(object);
  return `${kind} ${namespace}/${name}`;
}

function unchangedIn(own: OwnObjects, found: Objects, objects: WorkloadObjects): Deployment | null {
  const { deployment, variables, pull, documents, egress, disruption } = objects;
  const presentOf = <T extends KubernetesObject>(type: ResourceType<T>, object: T): T | null => {
    const present = (found.get(textOf(type, object)) ?? null) as T | null;
    return present !== null && isOwn(own, present) ? present : null;
  };
  const hasData = (secret: Secret): boolean =>
    isDeepStrictEqual(presentOf(resourceTypes.secrets, secret)?.data ?? {}, briefOf(secret.data)) &&
    presentOf(resourceTypes.secrets, secret) !== null;
  const hasSpec = <T extends NetworkPolicy | PodDisruptionBudget>(type: ResourceType<T>, object: T | null): boolean =>
    object === null || isPartOf(object.spec, presentOf(type, object)?.spec);
  const present = presentOf(resourceTypes.deployments, deployment);
  const isSame =
    isSameAsApplied(present, deployment) &&
    isPartOf(deployment.metadata?.labels, present?.metadata?.labels) &&
    isPartOf(deployment.spec, present?.spec) &&
    hasData(variables) &&
    isLoginFresh(presentOf(resourceTypes.secrets, pull), pull) &&
    (documents === null || hasData(documents)) &&
    hasSpec(resourceTypes.networkPolicies, egress) &&
    hasSpec(resourceTypes.podDisruptionBudgets, disruption);
  return isSame ? present : null;
}

/**
 * Whether an apply of these fields would change nothing. API servers add fields, leave a 0 out and write amounts
 * another way; a list with other items counts as another, though they may be somebody else's.
 */
export function isPartOf(desired: unknown, present: unknown, name = ''): boolean {
  if (typeof desired !== 'object' || desired === null) return isSameValue(desired, present, name);
  if (typeof present !== 'object' || present === null) return false;
  if (Array.isArray(desired) !== Array.isArray(present)) return false;
  if (Array.isArray(desired) && desired.length !== (present as unknown[]).length) return false;
  return Object.entries(desired).every(
    ([key, value]) => value === undefined || isPartOf(value, (present as Record<string, unknown>)[key], key),
  );
}

const AMOUNTS = new Set(['cpu', 'memory', 'ephemeral-storage']);

function isSameValue(desired: unknown, present: unknown, name: string): boolean {
  if (desired === present) return true;
  if (desired === 0) return present === undefined;
  if (!AMOUNTS.has(name) || typeof desired !== 'string' || typeof present !== 'string') return false;
  const amount = parseQuantity(desired);
  return amount !== null && amount === parseQuantity(present);
}
