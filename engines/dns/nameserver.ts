// Authoritative DNS for customer zones. Engines: engines/dns, an embedded server, and drivers/powerdns, which uses the
// API of PowerDNS.
import type { ServedType } from '../../core/protocols/dns_records/types';
import type { SigningKey } from '../../core/protocols/dnssec';
import type { DriverContext, ResourceDriver } from '../../core/driver';

type RecordType = ServedType | 'ALIAS';

/** One record as in the API (docs/contract/resources.md §12.2): names without a trailing dot, in lower case. */
export interface ZoneRecord {
  /** Relative to the zone; `@` is the apex. */
  name: string;
  type: RecordType;
  value: string;
  /** Seconds; null = the default of the zone. */
  ttl: number | null;
  priority?: number | null;
  weight?: number | null;
  port?: number | null;
  flags?: number | null;
  tag?: string | null;
}

interface ZoneSoa {
  /** Mailbox of the responsible person. */
  email: string;
  refresh: number;
  retry: number;
  expire: number;
  /** TTL of negative answers in seconds (RFC 2308 §4). */
  minimum: number;
}

/** Desired state of a zone. */
export interface ZoneSpec {
  /** In lower case, without a trailing dot. */
  name: string;
  /** SOA serial, incremented with every change (RFC 1982). */
  serial: number;
  /** In seconds. */
  default_ttl: number;
  soa: ZoneSoa;
  /** Host names of the platform at the apex. */
  name_servers: string[];
  records: ZoneRecord[];
  /** Empty: the zone is not signed. */
  keys: SigningKey[];
}

export interface ZoneObserved {
  serial: number;
  record_count: number;
  is_signed: boolean;
}

/** Counters of a zone since they were last taken. */
export interface ZoneCounters {
  queries: number;
  noerror: number;
  nxdomain: number;
  servfail: number;
}

/** Counters by zone id and record type of the query (`OTHER` for types that the API does not have). */
export type CountersByZone = Map<string, Map<string, ZoneCounters>>;

export interface NameserverDriver extends ResourceDriver<ZoneSpec, ZoneObserved> {
  /** An external program: it maintains the SOA serial itself, and may change independently. */
  readonly isExternal?: true;
  /** Returns the counters since the last call. */
  takeCounters(ctx: DriverContext): Promise<CountersByZone>;
}
