// What the service may do with the installation that it is: server/installation/ does it. Types only.

import type { DiskUsed } from './installation_reports';

export interface InstallationControl {
  /** The machine of this process. */
  machine(): Promise<MachineFacts>;
  /** Backups of the installation that this machine makes. */
  backups(): Promise<InstallationBackups>;
  /** A sentence on why upgrades and rollbacks cannot be started here, and what to do instead; null where they can. */
  upgradeObstacle(): string | null;
  /** The release to which a rollback leads; null: there is none. */
  versionBefore(): string | null;
  /** The upgrade or rollback that is under way, else the last one; null: there was none. */
  lastUpgrade(): UpgradeProgress | null;
  /**
   * Begins an upgrade to a version of the index of releases. What carries it out reads that index again, and its
   * signature. @throws invalid_state, engine_unavailable
   */
  beginUpgrade(version: string): Promise<void>;
  /** Begins a rollback to `versionBefore`. @throws invalid_state, engine_unavailable */
  beginRollback(): Promise<void>;
  /** A sentence on why the domain cannot be set up here, and what to do instead; null where it can. */
  setupObstacle(): string | null;
  /** @throws validation_failed on a field of the input */
  planSetup(choice: DomainChoice): Promise<DomainPlan>;
  /**
   * Begins the setup in a process beside the service, which restarts it. @param tokenHash of who may ask how far it is
   * @returns the address that the dashboard gets @throws validation_failed, invalid_state, engine_unavailable
   */
  beginSetup(choice: DomainChoice, tokenHash: string): Promise<string>;
  /** null for another token than that of the last setup. */
  setupProgress(tokenHash: string): Promise<DomainProgress | null>;
}

/** As an operator types it. */
export interface DomainChoice {
  domain: string;
  apps_domain?: string | null | undefined;
  email?: string | null | undefined;
  ips?: readonly string[] | null | undefined;
  name_server?: boolean | null | undefined;
}

export interface DomainPlan {
  address: string;
  records: { name: string; type: string; value: string; purpose: string }[];
  names: { name: string; status: 'ok' | 'missing' | 'wrong' | 'unanswered'; detail: string }[];
  settings: { name: string; value: string }[];
}

export interface DomainProgress {
  outcome: 'running' | 'done' | 'failed';
  lines: string[];
  reason: string | null;
  address: string;
}

export interface UpgradeProgress {
  kind: 'upgrade' | 'rollback';
  from: string;
  to: string | null;
  outcome: 'running' | 'done' | 'undone' | 'failed';
  summary: string;
  steps: { title: string; state: 'open' | 'running' | 'done' | 'failed' }[];
  notes: string[];
  backup: string | null;
  started_at: string;
  ended_at: string | null;
}

export interface MachineFacts {
  name: string;
  system: string;
  kernel: string;
  up_seconds: number;
  time: string;
  /** Null: the machine does not say. */
  is_clock_synchronised: boolean | null;
  cpus: number;
  /** Of 1, 5 and 15 minutes. */
  load: number[];
  memory_bytes: number;
  memory_available_bytes: number;
  swap_bytes: number;
  swap_free_bytes: number;
  disks: DiskUsed[];
  programs: { name: string; version: string }[];
}

export interface InstallationBackups {
  /** Where they go, without a password; null: there are none, `obstacle` says what to do. */
  repository: string | null;
  obstacle: string | null;
  every_hours: number;
  /** The last attempt. */
  started_at: string | null;
  ended_at: string | null;
  error: string | null;
  last_whole_at: string | null;
  /** When the next one is due; null: at once, or never. */
  next_at: string | null;
  files: number | null;
  bytes: number | null;
  added_bytes: number | null;
  notes: string[];
  proven_at: string | null;
  proof_seconds: number | null;
  proof_error: string | null;
  /** The newest first. */
  points: {
    id: string;
    made_at: string;
    version: string | null;
    files: number | null;
    bytes: number | null;
    proven_at: string | null;
    proof_error: string | null;
  }[];
}
