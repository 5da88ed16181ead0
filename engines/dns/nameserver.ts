// Authoritative DNS for zones of customers. One engine a folder: engines/dns, a server in this process,
// and drivers/powerdns, which drives one through its API.
import type { SigningKey } from '../../core/protocols/dnssec';
import type { DriverContext, ResourceDriver } from '../../core/driver';

export type RecordType = 'A' | 'AAAA' | 'ALIAS' | 'CAA' | 'CNAME' | 'MX' | 'NS' | 'PTR' | 'SRV' | 'TXT';

/** One record as the API keeps it (docs/contract/resources.md §12.2): names without a trailing dot, in lower case. */
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
  /** Mailbox of the person responsible. */
  email: string;
  refresh: number;
  retry: number;
  expire: number;
  /** TTL of negative answers, seconds (RFC 2308 §4). */
  minimum: number;
}

/** What a name server should serve for one zone. */
export interface ZoneSpec {
  /** Lower case, without a trailing dot. */
  name: string;
  /** SOA serial, raised with every change (RFC 1982). */
  serial: number;
  /** Seconds. */
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

/** Counters of one zone since they were last taken. */
export interface ZoneCounters {
  queries: number;
  noerror: number;
  nxdomain: number;
  servfail: number;
}

/** Counters by zone id, then by record type of the question (`OTHER` for types that the API does not have). */
export type CountersByZone = Map<string, Map<string, ZoneCounters>>;

export interface NameserverDriver extends ResourceDriver<ZoneSpec, ZoneObserved> {
  /** A program of its own: it keeps the serial of the SOA itself, and may change behind our back. */
  readonly isExternal?: true;
  /** Takes the counters since the last call. */
  takeCounters(ctx: DriverContext): Promise<CountersByZone>;
}
