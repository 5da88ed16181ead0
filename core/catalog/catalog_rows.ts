// Rows of the Reference catalogs, as in the API.

import type { ServedType } from '../protocols/dns_records/types';

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

/** File isolation between applications: a sandbox, one user per project, or none. */
export type FileIsolation = 'sandbox' | 'user' | 'none';

/** `project`: each project has its own network. `none`: all share the network of the host. */
export interface RegionNetworkRow {
  isolation: 'project' | 'none';
  /** Whether programs can connect to public addresses. */
  egress: boolean;
}

/** Isolation as reported by the worker of a region. */
export interface RegionIsolation {
  network: RegionNetworkRow;
  /** null: the worker's version does not report it. */
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

/** `regions`: those with capacity for the package now. */
export interface PackageAvailabilityRow {
  database_package: string;
  regions: string[];
}

export type EngineFeature = 'replicas' | 'users' | 'pooling' | 'backups' | 'point_in_time';

/** `end_of_life_on` is a date, YYYY-MM-DD; null where the vendor has not set one. */
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

export type DnsRecordType = ServedType | 'ALIAS';

/** `fields`: required fields in addition to name, value and ttl. */
export interface DnsRecordTypeRow {
  type: DnsRecordType;
  description: string;
  fields: string[];
  apex_allowed: boolean;
}
