// Volumes: directories with a size. Two engines: a directory whose use is measured (soft limit) and a disk image
// on a loop device (hard limit).
import type { ResourceDriver } from '../core/driver';

/** Bytes in one GB of `size_gb`: 2^30, as sizes of memory and disks are counted everywhere on the platform. */
export const gigabyteBytes = 2 ** 30;

/** `size_gb` is in units of 2^30 bytes. */
export interface VolumeSpec {
  size_gb: number;
}

/** hard: writes fail at the limit. soft: use is measured and shown, nothing stops a writer. */
export type VolumeEnforcement = 'hard' | 'soft';

/** `used_bytes` is null when it could not be measured in the time of one look. `path` is where the user's files are. */
export interface VolumeObserved {
  size_gb: number;
  used_bytes: number | null;
  over_quota: boolean;
  enforcement: VolumeEnforcement;
  path: string;
}

export interface VolumeDriver extends ResourceDriver<VolumeSpec, VolumeObserved> {
  readonly enforcement: VolumeEnforcement;
}

export type VolumeDriverName = 'directory' | 'loop_image';
export interface VolumeDrivers {
  default: VolumeDriver;
  byName: Map<string, VolumeDriver>;
}
