// Volumes: directories with a size. Engines of a host: a directory whose use is measured (soft limit) and a disk image
// on a loop device (hard limit). A cluster that runs applications has claims to its own storage.
import type { Desired, DriverContext, ResourceDriver } from '../core/driver';

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
  /** null for volumes of a cluster. */
  readonly files: VolumeFiles | null;
}

/** Of the engine of a cluster: its volumes are in no directory of this host. */
export const CLUSTER_VOLUMES = 'kubernetes';

export interface HostVolumeDriver extends ResourceDriver<HostVolumeSpec, HostVolumeObserved> {
  readonly enforcement: VolumeEnforcement;
  readonly files: VolumeFiles;
}

/** A directory to read, and the note of whose its files are (runtime/sandbox/mount_owners.ts). */
export interface FilesToRead {
  path: string;
  owners: string | null;
}

/**
 * snapshot: the files are as they were at one moment. unused: no process of a tenant had them at the beginning, nor at
 * the end. live: they may have been written to meanwhile.
 */
export type FilesRead = 'snapshot' | 'unused' | 'live';

export interface FilesReplacement {
  /** A repeated call with the same key continues, or finds that it is done. */
  key: string;
  /** Bytes that the new files take. */
  bytes: number;
  owners: string | null;
  /** Writes the new files to an empty directory. */
  fill(directory: string): Promise<void>;
}

/** The files of a volume as a whole, for backups. */
export interface VolumeFiles {
  /** @throws DriverError transient while the volume is not ready */
  read<T>(
    r: Desired<HostVolumeSpec>,
    read: (files: FilesToRead) => Promise<T>,
    ctx: DriverContext,
  ): Promise<{ result: T; how: FilesRead }>;
  /**
   * The new files are written beside the present ones, which stay until all of them are there. May be killed at any
   * point, and repeated.
   * @throws DriverError capacity where there is no room, invalid where they do not fit into the volume, transient while
   * the volume is in use
   */
  replace(r: Desired<HostVolumeSpec>, replacement: FilesReplacement, ctx: DriverContext): Promise<void>;
  /** Gives up a replacement that has not taken place. Absent is success. */
  discardReplacement(r: Desired<HostVolumeSpec>, ctx: DriverContext): Promise<void>;
}

export type VolumeDriverName = 'directory' | 'loop_image';
export interface VolumeDrivers {
  default: VolumeDriver;
  byName: Map<string, VolumeDriver>;
}
