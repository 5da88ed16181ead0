// Query counters by zone and type. PowerDNS counts queries per server, and keeps the last 10,000 in ring buffers; new
// queries are attributed to the names in the ring by their share. Every query is in the ring for as many others as it
// holds, and counts by its share in each sample: over time each is counted once.
import type { DriverContext } from '../../core/driver';
import { SERVED_TYPES } from '../../core/protocols/dns_records/types';
import type { CountersByZone, ZoneCounters } from '../../engines/dns';
import type { ApiZone, PowerdnsApi } from './api';

interface Statistic {
  name: string;
  value: string | { name: string; value: string }[];
}

const RINGS = { queries: 'queries', nxdomain: 'nxdomain-queries', servfail: 'servfail-queries' } as const;
const TOTALS = {
  queries: ['udp-queries', 'tcp-queries'],
  nxdomain: ['nxdomain-packets'],
  servfail: ['servfail-packets'],
};
const TYPES = new Set<string>(SERVED_TYPES);

type Counter = keyof typeof RINGS;
const COUNTERS = Object.keys(RINGS) as Counter[];

interface Counters {
  take(ctx: DriverContext): Promise<CountersByZone>;
}

interface Seen {
  /** Total of the server since its start. */
  total: number;
  ring: Map<string, number>;
}

/** @param prefix of the accounts of the platform's zones */
export function openCounters(api: PowerdnsApi, prefix: string): Counters {
  const before = new Map<Counter, Seen>();
  const fractions = new Map<string, number>();
  return {
    async take(ctx) {
      const statistics = (await api.call<Statistic[]>('GET', '/statistics', ctx)) ?? [];
      const zones = ((await api.call<ApiZone[]>('GET', '/zones?dnssec=false', ctx)) ?? []).filter(({ account }) =>
        account.startsWith(prefix),
      );
      const idByName = new Map(zones.map(({ name, account }) => [name.toLowerCase(), account.slice(prefix.length)]));
      const counted: CountersByZone = new Map();
      for (const counter of COUNTERS) {
        const seen: Seen = { total: totalOf(statistics, counter), ring: ringOf(statistics, counter) };
        const last = before.get(counter);
        before.set(counter, seen);
        // The first sample is only the baseline.
        if (!last) continue;
        for (const [question, share] of sharesOf(seen, last, capacityOf(statistics, counter)))
          add(counted, fractions, idByName, { counter, question, share });
      }
      for (const types of counted.values()) for (const one of types.values()) completeNoError(one);
      return counted;
    },
  };
}

/** The number of new queries by name: exact while the ring has free slots, by share once it is full. */
function sharesOf(seen: Seen, last: Seen, capacity: number): [string, number][] {
  // A lower total means that the server was restarted.
  const known: Seen = seen.total < last.total ? { total: 0, ring: new Map() } : last;
  const added = seen.total - known.total;
  const size = [...seen.ring.values()].reduce((sum, value) => sum + value, 0);
  if (added === 0 || size === 0) return [];
  return [...seen.ring].map(([question, value]) => [
    question,
    size < capacity ? Math.max(0, value - (known.ring.get(question) ?? 0)) : (value / size) * added,
  ]);
}

function totalOf(statistics: Statistic[], counter: Counter): number {
  const values = statistics.filter(({ name }) => TOTALS[counter].includes(name)).map(({ value }) => Number(value));
  return values.reduce((sum, value) => sum + value, 0);
}

/** Entries are `www.example.com/A`. */
function ringOf(statistics: Statistic[], counter: Counter): Map<string, number> {
  const found = statistics.find(({ name, value }) => name === RINGS[counter] && Array.isArray(value));
  const entries = (found?.value ?? []) as { name: string; value: string }[];
  return new Map(entries.map(({ name, value }) => [name, Number(value)]));
}

function capacityOf(statistics: Statistic[], counter: Counter): number {
  return Number(statistics.find(({ name }) => name === `ring-${RINGS[counter]}-capacity`)?.value ?? 0);
}

/** Adds whole queries; the fraction is carried over to the next sample. */
function add(
  counted: CountersByZone,
  fractions: Map<string, number>,
  idByName: Map<string, string>,
  { counter, question, share }: { counter: Counter; question: string; share: number },
): void {
  const slash = question.lastIndexOf('/');
  const id = zoneOf(question.slice(0, slash), idByName);
  if (id === null || share === 0) return;
  const type = question.slice(slash + 1);
  const label = TYPES.has(type) ? type : 'OTHER';
  const key = `${counter} ${id} ${label}`;
  const exact = share + (fractions.get(key) ?? 0);
  const whole = Math.floor(exact);
  fractions.set(key, exact - whole);
  if (whole) counterOf(counted, id, label)[counter] += whole;
}

/** The zone with the longest name that contains the query name. */
function zoneOf(question: string, idByName: Map<string, string>): string | null {
  const labels = `${question.toLowerCase().replace(/\.$/, '')}.`.split('.');
  for (let from = 0; from < labels.length - 1; from += 1) {
    const id = idByName.get(labels.slice(from).join('.'));
    if (id !== undefined) return id;
  }
  return null;
}

function counterOf(counted: CountersByZone, id: string, type: string): ZoneCounters {
  const types = counted.get(id) ?? new Map<string, ZoneCounters>();
  counted.set(id, types);
  const known = types.get(type) ?? { queries: 0, noerror: 0, nxdomain: 0, servfail: 0 };
  types.set(type, known);
  return known;
}

function completeNoError(one: ZoneCounters): void {
  one.noerror = Math.max(0, one.queries - one.nxdomain - one.servfail);
}
