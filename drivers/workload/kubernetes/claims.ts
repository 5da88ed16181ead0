// Volumes of a cluster: a PersistentVolumeClaim for each, ReadWriteOnce, in the namespace of its project. The storage
// class makes the disk, grows it and removes it.
import type { PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { StorageClass } from 'kubernetes-types/storage/v1';
import { DriverError, type Desired, type DriverContext, type Ensured, type Fingerprint } from '../../../core/driver';
import type { Observation, Owned } from '../../../core/driver';
import { parseQuantity } from '../../kubernetes/client/quantity';
import { resourceTypes, type ObjectName } from '../../kubernetes/client/resource_type';
import { CLUSTER_VOLUMES, gigabyteBytes, type VolumeDriver, type VolumeObserved, type VolumeSpec } from '../../volume';
import { LABEL, namespaceOf, objectNameOf, projectLabels } from './names';
import { ensureProject, type ProjectOptions } from './namespace';
import { applyOver, isOwn, listForSweep } from './own_object';
import { sentence } from './pod_state';
import { nameTaken, requireGrowth } from '../../volume/layout';

export interface ClaimOptions extends ProjectOptions {
  /** KUBERNETES_STORAGE_CLASS; null: the default class of the cluster. */
  storageClass: string | null;
}

type Volume = Desired<VolumeSpec>;

const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
/** They give a directory of a node, and stop no write. */
export const WITHOUT_LIMIT = new Set(['kubernetes.io/no-provisioner', 'rancher.io/local-path']);
const SOON_MS = 2_000;

export function claimVolumes(options: ClaimOptions): VolumeDriver {
  return {
    name: CLUSTER_VOLUMES,
    enforcement: 'hard',
    files: null,
    fingerprint: (ctx) => fingerprint(options, ctx),
    observe: (r, ctx) => observe(options, r, ctx),
    ensure: (r, _obs, ctx) => ensure(options, r, ctx),
    remove: (r, _obs, ctx) => remove(options, r, ctx),
    list: (ctx) => listClaims(options, ctx),
  };
}

/** Name of the claim of a volume. */
export function claimNameOf(volumeId: string): string {
  return objectNameOf(volumeId);
}

async function fingerprint(options: ClaimOptions, ctx: DriverContext): Promise<Fingerprint> {
  try {
    const { metadata, provisioner, allowVolumeExpansion = false } = await requireClass(options, ctx);
    const facts = { storage_class: metadata?.name ?? '', provisioner, grows: allowVolumeExpansion };
    return { healthy: true, reason: null, facts };
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    return { healthy: false, reason: error.message, facts: {} };
  }
}

async function observe(options: ClaimOptions, r: Volume, ctx: DriverContext): Promise<Observation<VolumeObserved>> {
  const claim = await options.client.get(resourceTypes.persistentVolumeClaims, keyOf(options, r), ctx);
  if (claim === null) return { state: 'absent' };
  if (!isOwn(options, claim)) return { state: 'foreign', detail: nameTaken().message };
  const storage = await classOf(options, claim, ctx);
  const requested = gigabytes(claim.spec?.resources?.requests?.storage);
  const isBound = claim.status?.phase === 'Bound';
  const size_gb = isBound ? gigabytes(claim.status?.capacity?.storage) : requested;
  // Some classes make the disk on the machine of the first pod.
  const isReady = isBound || storage?.volumeBindingMode === 'WaitForFirstConsumer';
  const isLost = claim.status?.phase === 'Lost' || claim.metadata?.deletionTimestamp !== undefined;
  return {
    state: 'present',
    upToDate: isReady && !isLost && requested >= r.spec.size_gb && size_gb >= r.spec.size_gb,
    observed: {
      ...{ size_gb: Math.floor(size_gb), used_bytes: null, over_quota: false, path: null },
      enforcement: storage && WITHOUT_LIMIT.has(storage.provisioner) ? 'soft' : 'hard',
    },
  };
}

async function ensure(options: ClaimOptions, r: Volume, ctx: DriverContext): Promise<Ensured> {
  const ref = { driver: CLUSTER_VOLUMES, name: r.id };
  const present = await options.client.get(resourceTypes.persistentVolumeClaims, keyOf(options, r), ctx);
  if (present === null) {
    if (r.ref !== undefined) throw claimGone();
    await ensureProject(options, r.spec.project_id, ctx);
    await apply(options, r, null, (await requireClass(options, ctx)).metadata?.name ?? '', ctx);
    return { ref, requeueMs: SOON_MS };
  }
  if (!isOwn(options, present)) throw nameTaken();
  if (present.metadata?.deletionTimestamp !== undefined || present.status?.phase === 'Lost') throw claimGone();
  const requested = gigabytes(present.spec?.resources?.requests?.storage);
  requireGrowth(Math.floor(requested), r.spec.size_gb);
  if (requested < r.spec.size_gb) {
    await requireGrowingClass(options, present, ctx);
    await apply(options, r, present, present.spec?.storageClassName ?? '', ctx);
  }
  if (present.status?.phase === 'Bound')
    return { ref, waiting: 'The cluster has not finished to grow the volume yet.' };
  throw new DriverError(
    'transient',
    `The cluster has no disk for the volume yet.${await lastEvent(options, present, ctx)}`,
  );
}

/** A volume whose data are gone is not replaced by an empty one. */
function claimGone(): DriverError {
  return new DriverError(
    'conflict',
    'The cluster has removed this volume, or has lost its disk. Restore it in the cluster, or delete the volume.',
  );
}

async function apply(
  options: ClaimOptions,
  r: Volume,
  present: PersistentVolumeClaim | null,
  storageClassName: string,
  ctx: DriverContext,
): Promise<void> {
  const { project_id, size_gb } = r.spec;
  const claim: PersistentVolumeClaim = {
    metadata: { ...keyOf(options, r), labels: { ...projectLabels(options.prefix, project_id), [LABEL.volume]: r.id } },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: `${size_gb}Gi` } },
    },
  };
  await applyOver(options, resourceTypes.persistentVolumeClaims, present, claim, ctx);
}

/** The claim stays until the last pod that uses it has ended; its reclaim policy says what becomes of the disk. */
async function remove(options: ClaimOptions, r: Volume, ctx: DriverContext): Promise<void> {
  const { client } = options;
  const key = keyOf(options, r);
  const claim = await client.get(resourceTypes.persistentVolumeClaims, key, ctx);
  if (claim === null || !isOwn(options, claim)) return;
  await client.remove(resourceTypes.persistentVolumeClaims, key, { uid: claim.metadata?.uid }, ctx);
  const left = await client.get(resourceTypes.persistentVolumeClaims, key, ctx);
  if (left?.metadata?.uid === claim.metadata?.uid)
    throw new DriverError('transient', 'The cluster has not removed the volume yet.');
}

async function* listClaims(options: ClaimOptions, ctx: DriverContext): AsyncIterable<Owned> {
  for await (const { metadata } of listForSweep(options, [resourceTypes.persistentVolumeClaims], {}, ctx)) {
    const owner_id = metadata?.labels?.[LABEL.volume];
    if (owner_id !== undefined) yield { ref: { driver: CLUSTER_VOLUMES, name: owner_id }, owner_id };
  }
}

/** @throws DriverError `unsupported` where there is none */
export async function requireClass({ client, storageClass }: ClaimOptions, ctx: DriverContext): Promise<StorageClass> {
  if (storageClass !== null) {
    const found = await client.get(resourceTypes.storageClasses, { name: storageClass }, ctx);
    if (found) return found;
    throw new DriverError(
      'unsupported',
      `The cluster has no storage class ${storageClass} (KUBERNETES_STORAGE_CLASS).`,
    );
  }
  const { items } = await client.list(resourceTypes.storageClasses, {}, ctx);
  const found = items.find(({ metadata }) => metadata?.annotations?.[IS_DEFAULT] === 'true');
  if (found) return found;
  throw new DriverError('unsupported', 'The cluster has no default storage class: set KUBERNETES_STORAGE_CLASS.');
}

/** null: its class has gone, or it has none. */
export async function classOf(
  { client }: ClaimOptions,
  { spec }: PersistentVolumeClaim,
  ctx: DriverContext,
): Promise<StorageClass | null> {
  const name = spec?.storageClassName;
  return name ? client.get(resourceTypes.storageClasses, { name }, ctx) : null;
}

/** @throws DriverError `unsupported` */
export async function requireGrowingClass(
  options: ClaimOptions,
  claim: PersistentVolumeClaim,
  ctx: DriverContext,
): Promise<void> {
  if ((await classOf(options, claim, ctx))?.allowVolumeExpansion === true) return;
  throw new DriverError(
    'unsupported',
    `Volumes of the storage class ${claim.spec?.storageClassName ?? ''} of the cluster cannot grow.`,
  );
}

/** What the cluster says of a claim that waits, with a space before it. */
export async function lastEvent(
  { client }: ClaimOptions,
  claim: PersistentVolumeClaim,
  ctx: DriverContext,
): Promise<string> {
  const message = sentence((await client.eventsOf(claim, ctx)).at(-1)?.message ?? '');
  return message === '' ? '' : ` ${message.charAt(0).toUpperCase()}${message.slice(1)}`;
}

function keyOf({ prefix }: ClaimOptions, { id, spec }: Volume): Required<ObjectName> {
  return { namespace: namespaceOf(prefix, spec.project_id), name: claimNameOf(id) };
}

function gigabytes(quantity: string | undefined): number {
  return (parseQuantity(quantity ?? '') ?? 0) / gigabyteBytes;
}
