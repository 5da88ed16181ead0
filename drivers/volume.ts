// Volumes: directories with a size. Two engines: a directory whose use is measured (soft limit) and a disk image
// on a loop device (hard limit).
import type { ResourceDriver } from '../core/driver';

/** Bytes in one GB of `size_gb`: 2^30, as for all memory and disk sizes of the platform. */
export const gigabyteBytes = 2 ** 30;

/** `size_gb` is in units of 2^30 bytes. */
export interface VolumeSpec {
  size_gb: number;
}

/** hard: writes fail at the limit. soft: usage is measured and shown, but writes are not stopped. */
export type VolumeEnforcement = 'hard' | 'soft';

/** `used_bytes` is null where the measurement timed out. `path` contains the user's files. */
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
