// Volumes: directories with a size. Engines of a host: a directory whose use is measured (soft limit) and a disk image
// on a loop device (hard limit). A cluster that runs applications has claims to its own storage.
import type { ResourceDriver } from '../core/driver';

/** Bytes in one GB of `size_gb`: 2^30, as for all memory and disk sizes of the platform. */
export const gigabyteBytes = 2 ** 30;

/** `size_gb` is in units of 2^30 bytes. */
export interface HostVolumeSpec {
  size_gb: number;
}

export interface VolumeSpec extends HostVolumeSpec {
  project_id: string;
}

/** hard: writes fail at the limit. soft: usage is measured and shown, but writes are not stopped. */
type VolumeEnforcement = 'hard' | 'soft';

/** `used_bytes` is null where it is not known. `path` contains the user's files. */
export interface HostVolumeObserved {
  size_gb: number;
  used_bytes: number | null;
  over_quota: boolean;
  enforcement: VolumeEnforcement;
  path: string;
}

/** `path` is null for volumes of a cluster. */
export type VolumeObserved = Omit<HostVolumeObserved, 'path'> & { path: string | null };

export interface VolumeDriver extends ResourceDriver<VolumeSpec, VolumeObserved> {
  readonly enforcement: VolumeEnforcement;
}

/** Of the engine of a cluster: its volumes are in no directory of this host. */
export const CLUSTER_VOLUMES = 'kubernetes';

export interface HostVolumeDriver extends ResourceDriver<HostVolumeSpec, HostVolumeObserved> {
  readonly enforcement: VolumeEnforcement;
}

export type VolumeDriverName = 'directory' | 'loop_image';
export interface VolumeDrivers {
  default: VolumeDriver;
  byName: Map<string, VolumeDriver>;
}
