// The rows of the Reference catalogs, as they travel.

export type Feature = 'applications' | 'databases' | 'volumes' | 'object_storage' | 'registry';

export interface RegionRow {
  id: string;
  name: string;
  country: string | null;
  city: string | null;
  available: boolean;
  features: Feature[];
  /** null: no worker of the region has reported it. */
  network: RegionNetworkRow | null;
  file_isolation: FileIsolation | null;
}

/** What keeps applications from the files of others: a sandbox, the users of projects, or nothing. */
export type FileIsolation = 'sandbox' | 'user' | 'none';

/** `project`: each project has a network of its own. `none`: all share that of the host. */
export interface RegionNetworkRow {
  isolation: 'project' | 'none';
  /** Whether programs connect to public addresses. */
  egress: boolean;
}

/** What the worker of a region has reported. */
export interface RegionIsolation {
  network: RegionNetworkRow;
  /** null: reported by a version that did not report it. */
  files: FileIsolation | null;
}

/** Prices are decimal strings in `currency`. */
export interface ApplicationTypeRow {
  id: string;
  name: string;
  vcpu: number;
  memory_mb: number;
  disk_gb: number;
  max_instances: number;
  regions: string[];
  price_hourly: string;
  price_monthly: string;
  currency: string;
  default: boolean;
  available: boolean;
}

export interface BuildpackBuilderRow {
  id: string;
  name: string;
  description: string;
  image: string | null;
  languages: string[];
  default: boolean;
  deprecated: boolean;
}

export interface DatabasePackageRow {
  id: string;
  name: string;
  engines: string[];
  nodes: number;
  vcpu: number;
  memory_mb: number;
  storage_gb: number;
  max_storage_gb: number;
  max_connections: number;
  price_hourly: string;
  price_monthly: string;
  currency: string;
}

/** `regions`: those that the package fits in now. */
export interface PackageAvailabilityRow {
  database_package: string;
  regions: string[];
}

export type EngineFeature = 'replicas' | 'users' | 'pooling' | 'backups' | 'point_in_time';

/** `end_of_life_on` is a date, YYYY-MM-DD; null when its makers have set none. */
export interface EngineVersionRow {
  version: string;
  default: boolean;
  status: 'supported' | 'deprecated';
  end_of_life_on: string | null;
}

export interface DatabaseEngineRow {
  id: string;
  name: string;
  versions: EngineVersionRow[];
  features: EngineFeature[];
  default_port: number;
}

export interface PresetVariable {
  key: string;
  description: string;
  default: string | null;
  required: boolean;
}

export interface PresetRow {
  id: string;
  name: string;
  description: string;
  category: string;
  icon_url: string | null;
  image: string | null;
  application_type: string;
  requires_engine: string | null;
  variables: PresetVariable[];
}

export type DnsRecordType = 'A' | 'AAAA' | 'ALIAS' | 'CAA' | 'CNAME' | 'MX' | 'NS' | 'PTR' | 'SRV' | 'TXT';

/** `fields`: those needed beyond name, value and ttl. */
export interface DnsRecordTypeRow {
  type: DnsRecordType;
  description: string;
  fields: string[];
  apex_allowed: boolean;
}
