// Facts about the host, from which the catalogs are derived.

/**
 * An installed server program. `version` as reported by itself, e.g. 15.16. `series` is selected by customers: 15, 7.0,
 * 10.11.
 */
export interface EngineFound {
  version: string;
  series: string;
  path: string;
  /** New databases of the series run in the cluster (DATABASE_IMAGES). */
  image?: string;
  /** Programs of the host beside the server, e.g. pg_dump. Only of PostgreSQL. */
  tools?: string[];
  /** Beside an image: what the host has for those that it runs already. */
  onHost?: EngineFound;
}

export interface PostgresqlFound extends EngineFound {
  source: 'system' | 'embedded';
  tools: string[];
  /** By name; absent where nobody has looked. */
  extensions?: ExtensionFound[];
}

/** What the control file of an extension says. */
export interface ExtensionFound {
  name: string;
  version: string;
  description: string;
  /** Names of other extensions. */
  requires: string[];
  /** Whether it needs no superuser. */
  is_trusted: boolean;
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
  | 'ping'
  | 'script'
  | 'perl'
  | 'cargo'
  | 'cc'
  | 'javac'
  | 'maven'
  | 'gradle'
  | 'php'
  | 'php_fpm'
  | 'composer'
  | 'nginx'
  | 'ruby'
  | 'bundler';

/** A JDK. `major`: 17. `isDefault`: its programs are those in the PATH. */
export interface JavaFound {
  major: number;
  home: string;
  isDefault: boolean;
}

export type OciBuilderName = 'podman' | 'buildah' | 'docker';

/** Facts about installed programs that the start needs. */
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
  /** Python by series, as programs such as python3.12; python3 may be another one. */
  pythons?: Record<string, ProgramFound>;
  /** The one in the PATH first. */
  javas?: JavaFound[];
  oci_builders: OciBuilderName[];
  /** Programs of core/catalog/optional_programs.json that are not installed. */
  missing_programs: string[];
}
