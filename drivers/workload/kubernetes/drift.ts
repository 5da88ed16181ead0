// What somebody else has changed in objects of this platform. An annotation keeps what was applied last: where it is
// the same as now, any difference is somebody else's.
import { isDeepStrictEqual } from 'node:util';
import type { Deployment } from 'kubernetes-types/apps/v1';
import type { Secret } from 'kubernetes-types/core/v1';
import type { DriverContext } from '../../../core/driver';
import { resourceTypes } from '../../kubernetes/client/resource_type';
import { shortDigestOf } from './names';
import { applyOver, isOwn, keyOf, type OwnObjects } from './own_object';

const APPLIED = 'platform-api/applied';
const FIELDS_MAX = 10;

export function withDigest(deployment: Deployment): Deployment {
  const annotations = { [APPLIED]: shortDigestOf(JSON.stringify(deployment.spec)) };
  return { ...deployment, metadata: { ...deployment.metadata, annotations } };
}

/** Whether these are the specifications of one and the same workload. */
export function isSameAsApplied(present: Deployment | null, desired: Deployment): boolean {
  return present?.metadata?.annotations?.[APPLIED] === desired.metadata?.annotations?.[APPLIED];
}

/** Names of fields that differed from what was applied before, as in `spec.replicas`. */
export function correctedFields(present: Deployment, desired: Deployment, applied: Deployment): string[] {
  if (!isSameAsApplied(present, desired)) return [];
  return [...new Set(differences(present.spec, applied.spec, 'spec'))].slice(0, FIELDS_MAX);
}

function differences(before: unknown, after: unknown, name: string): string[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isObject(before) || !isObject(after)) return [name];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const isList = Array.isArray(before) && Array.isArray(after);
  return [...keys].flatMap((key) => differences(before[key], after[key], isList ? name : `${name}.${key}`));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/**
 * The Secret as it should be. An immutable one with other values is somebody else's work: it is made anew.
 * @returns whether one of this name had other values. @throws DriverError `conflict` where it is somebody else's
 */
export async function ensureImmutable(own: OwnObjects, secret: Secret, ctx: DriverContext): Promise<boolean> {
  const { client } = own;
  const present = await client.get(resourceTypes.secrets, keyOf(secret), ctx);
  if (present !== null && isOwn(own, present) && isDeepStrictEqual(present.data ?? {}, secret.data ?? {})) return false;
  const isReplaced = present !== null && isOwn(own, present);
  if (isReplaced) await client.remove(resourceTypes.secrets, keyOf(secret), { uid: present.metadata?.uid }, ctx);
  await applyOver(own, resourceTypes.secrets, isReplaced ? null : present, secret, ctx);
  return isReplaced;
}
