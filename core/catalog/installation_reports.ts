// What processes and machines of an installation report of themselves (models/base/installation_report.ts). Types only.
import type { WorkState } from '../process/background';

/** Of a process, each half a minute. */
export interface ProcessReport {
  /** `service`, `web` or `worker`. */
  role: string;
  pid: number;
  version: string;
  /** RFC 3339. */
  started_at: string;
  memory_bytes: number;
  work: readonly WorkState[];
}

/** How full a file system that holds data is. */
export interface DiskUsed {
  /** Where it is mounted. */
  mount: string;
  size_bytes: number;
  /** What is left for others than root does not count. */
  used_bytes: number;
  /** Null where the file system has no fixed number of them. */
  inodes: number | null;
  inodes_used: number | null;
}

/** Of a machine: how full its file systems were, oldest first. */
export interface DiskSamples {
  samples: { at: string; disks: DiskUsed[] }[];
}

/** What takes the room. `cache`: it can be made again. */
export interface DiskKind {
  kind: string;
  bytes: number;
  /** Why it could not be measured whole. */
  problem: string | null;
}

/** Of a machine, each few hours. */
export interface DiskUse {
  started_at: string;
  ended_at: string;
  kinds: DiskKind[];
  /** The largest first. `name` is null for a project that is gone. */
  projects: { id: string; name: string | null; bytes: number; parts: { kind: string; bytes: number }[] }[];
}

/** The last cleaning of caches. */
export interface CacheCleaning {
  requested_at: string;
  /** Null: it is under way. */
  ended_at: string | null;
  applications: number;
  freed_bytes: number;
  /** Caches of applications that were being deployed. */
  kept: number;
  problem: string | null;
}
