// What was found on the host that the platform runs on. The catalogs are made of it.

/**
 * A server program that was found. `version` as it says itself, e.g. 15.16. `series` is what a customer picks: 15, 7.0,
 * 10.11.
 */
export interface EngineFound {
  version: string;
  series: string;
  path: string;
}

/** `tools` are the programs found beside the server, e.g. initdb, pg_dump. */
export interface PostgresqlFound extends EngineFound {
  source: 'system' | 'embedded';
  tools: string[];
}

export interface ProgramFound {
  version: string;
  path: string;
}

export type ProgramName =
  | 'git'
  | 'node'
  | 'npm'
  | 'yarn'
  | 'pnpm'
  | 'python3'
  | 'poetry'
  | 'uv'
  | 'go'
  | 'bubblewrap'
  | 'pgbouncer'
  | 'haproxy'
  | 'mariadb_dump'
  | 'ping';
export type OciBuilderName = 'podman' | 'buildah' | 'docker';

/** What a start needs to know of the programs of its host. */
export type EngineFacts = Pick<HostFacts, 'postgresql' | 'redis' | 'valkey' | 'mariadb' | 'missing_programs'>;

/** Sizes in bytes. Memory respects the limit of the control group. Disk is that of the data directory. */
export interface HostFacts {
  cpus: number;
  memory_total_bytes: number;
  memory_available_bytes: number;
  disk_total_bytes: number;
  disk_free_bytes: number;
  postgresql: PostgresqlFound[];
  redis: EngineFound[];
  valkey: EngineFound[];
  mariadb: EngineFound[];
  programs: Partial<Record<ProgramName, ProgramFound>>;
  /** Python by series, as programs such as python3.12; the one that is called python3 may be none of them. */
  pythons?: Record<string, ProgramFound>;
  oci_builders: OciBuilderName[];
  /** Programs of core/catalog/optional_programs.json that were not found. */
  missing_programs: string[];
}
