// The embedded name server: answers from memory, and persists a copy of its zones on disk.
import { createHash, randomBytes } from 'node:crypto';
import {
  asDriverErrors,
  checkpoint,
  DriverError,
  type Desired,
  type DriverContext,
  type Observation,
  type Owned,
} from '../../core/driver';
import type { DnsQuestions } from '../../core/protocols/dns';
import type { CountersByZone, NameserverDriver, ZoneObserved, ZoneSpec } from './nameserver';
import { openAnswering, type Answering, type ZoneText } from './answering';
import { listenUntilBound, type ListenEvents } from './process/listening';
import { openNotifier, type Notifier, type Secondary } from './notify';
import { openAnsweringProcess } from './process/client';
import { openZoneStore, type KeySealer, type ZoneStore } from './store';
import type { TsigKey } from './wire/tsig';

interface EmbeddedNameserverOptions {
  /** Directory of the zone copies, absolute. */
  directory: string;
  /** Addresses to listen on. */
  addresses: string[];
  /** Ports, tried in this order. */
  ports: number[];
  sealer: KeySealer;
  questions: Pick<DnsQuestions, 'a' | 'aaaa'>;
  /** Responses per second to one client network without a cookie. */
  responsesPerSecond: number;
  /** Zones of the platform itself, always served. */
  own: ZoneSpec[];
  /** Servers that may transfer zones, and the key that signs transfers. */
  secondaries?: readonly Secondary[];
  /** When they are notified. Default: of every change, and of all zones when the port is bound. */
  notifying?: 'changes' | 'on_request';
  /** When it begins to listen. Default: at once. */
  listenFrom?: 'open' | 'on_request';
  transferKey?: TsigKey | null;
  /** Events of the port. A bind that fails is retried. */
  listening?: ListenEvents;
  /** Secret of DNS cookies, which all servers behind one address share. Default: random. */
  cookieSecret?: Buffer;
  /** Of a child process that answers: the resolvers for ALIAS records. Absent: this process answers. */
  process?: { resolvers: string[]; ended(reason: string): void };
}

export interface EmbeddedNameserver extends NameserverDriver {
  /** The bound port; null while none can be bound. */
  readonly port: number | null;
  /** Of a zone that it has; null where it has none of this id. */
  serialOf(id: string): number | null;
  /** Idempotent. Resolves when it listens, or has failed to and tries again. */
  listen(): Promise<void>;
  notifySecondaries(zone: string): void;
  close(): Promise<void>;
}

const NAME = 'embedded';

/** Summary of a served zone, to detect whether it is up to date. */
interface Served extends ZoneObserved {
  name: string;
  digest: string;
}

interface State {
  store: ZoneStore;
  answering: Answering;
  byId: Map<string, Served>;
  idByName: Map<string, string>;
  notifier: Notifier;
  /** Notifies secondaries, if this server does so. */
  changed(zone: string): void;
}

export async function openEmbeddedNameserver(options: EmbeddedNameserverOptions): Promise<EmbeddedNameserver> {
  const { secondaries = [], transferKey: key = null } = options;
  const store = await openZoneStore(options.directory, options.sealer);
  const tables = { byId: new Map<string, Served>(), idByName: new Map<string, string>() };
  for (const { name } of options.own) tables.idByName.set(name, `own:${name}`);
  async function* load(): AsyncIterable<ZoneText> {
    for (const spec of options.own) yield textOf(`own:${spec.name}`, spec);
    for await (const { id, spec } of store.load()) {
      const zone = textOf(id, spec);
      const isOfAnother = (tables.idByName.get(spec.name) ?? id) !== id;
      if (!tables.byId.has(id)) enter(tables, id, spec, isOfAnother ? null : zone.text);
      // Two zone ids may have copies of the same name after a takeover. Only one is served: `ensure` decides which.
      if (!isOfAnother) yield zone;
    }
  }
  const answering = await openAnsweringFor(options, load);
  const notifier = openNotifier(secondaries, key);
  const changed = (zone: string): void => (options.notifying === 'on_request' ? undefined : notifier.notify(zone));
  const state: State = { ...tables, store, answering, notifier, changed };
  const bound = (port: number): void => {
    // Notifications before the bind may be lost, and transfers failed.
    for (const { name } of state.byId.values()) state.changed(name);
    options.listening?.bound(port);
  };
  const failed = (error: Error): void => options.listening?.failed(error);
  let listening: ReturnType<typeof listenUntilBound> | null = null;
  const listen = async (): Promise<void> => {
    await (listening ??= listenUntilBound(answering, options.ports, { failed, bound }));
  };
  if (options.listenFrom !== 'on_request') await listen();
  return {
    ...driverOf(state),
    listen,
    serialOf: (id) => state.byId.get(id)?.serial ?? null,
    notifySecondaries: (zone) => state.notifier.notify(zone),
    get port() {
      return answering.port();
    },
    async close() {
      await (await listening)?.stop();
      state.notifier.close();
      await answering.close();
    },
  };
}

async function openAnsweringFor(
  options: EmbeddedNameserverOptions,
  load: () => AsyncIterable<ZoneText>,
): Promise<Answering> {
  const { addresses, responsesPerSecond, secondaries = [], transferKey: key = null, process } = options;
  const transfers = { key, addresses: secondaries.map(({ address }) => address) };
  const { cookieSecret = randomBytes(16) } = options;
  const common = { addresses, responsesPerSecond, transfers, cookieSecret };
  if (process) return openAnsweringProcess({ ...common, ...process, load });
  const answering = openAnswering(common, options.questions);
  for await (const zone of load()) await answering.put([zone]);
  return answering;
}

function textOf(id: string, spec: ZoneSpec): ZoneText {
  return { id, name: spec.name, text: JSON.stringify(spec) };
}

/** @param text null where another zone owns the name: this zone is not up to date then */
function enter(
  { byId, idByName }: Pick<State, 'byId' | 'idByName'>,
  id: string,
  { name, serial, records, keys }: ZoneSpec,
  text: string | null,
): void {
  const digest = text === null ? '' : digestOf(text);
  byId.set(id, { name, serial, record_count: records.length, is_signed: keys.length > 0, digest });
  if (text !== null) idByName.set(name, id);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

function driverOf(state: State): NameserverDriver {
  return {
    name: NAME,
    async fingerprint() {
      const port = state.answering.port();
      const reason = port === null ? 'The name server listens on no port.' : null;
      return {
        healthy: port !== null,
        reason,
        facts: { ...(port !== null && { port }), zones: state.byId.size, dnssec: true },
      };
    },
    async observe({ id, spec }, ctx) {
      checkpoint(ctx);
      return observe(state, id, spec);
    },
    ensure: (desired, observation, ctx) => asDriverErrors(() => ensure(state, desired, observation, ctx)),
    remove: ({ id }, _, ctx) => asDriverErrors(() => remove(state, id, ctx)),
    async *list(): AsyncIterable<Owned> {
      for (const id of state.byId.keys()) yield { ref: { driver: NAME, name: id }, owner_id: id };
    },
    takeCounters: (): Promise<CountersByZone> => state.answering.takeCounters(),
  };
}

async function observe(
  { store, byId, idByName }: State,
  id: string,
  spec: ZoneSpec,
): Promise<Observation<ZoneObserved>> {
  const served = byId.get(id);
  const other = idByName.get(spec.name);
  if (!served && other !== undefined)
    return { state: 'foreign', detail: `${other} is served under the name ${spec.name}` };
  if (!served) return { state: 'absent' };
  // A restart serves the copy on disk: a missing or modified copy must be repaired.
  const kept = await store.read(id);
  if (!kept) return { state: 'absent' };
  const { serial, record_count, is_signed } = served;
  const text = JSON.stringify(spec);
  const isSame = served.digest === digestOf(text) && JSON.stringify(kept) === text;
  return {
    state: 'present',
    upToDate: isSame,
    observed: { serial, record_count, is_signed },
    ...(!isSame && { diff: `serial ${serial} is not ${spec.serial}` }),
  };
}

async function ensure(
  state: State,
  { id, spec }: Desired<ZoneSpec>,
  observation: Observation<ZoneObserved>,
  ctx: DriverContext,
): Promise<{ ref: { driver: string; name: string } }> {
  checkpoint(ctx);
  const { store, answering, idByName } = state;
  // The zone of the previous owner of the name may not be removed yet.
  if ((idByName.get(spec.name) ?? id) !== id)
    throw new DriverError('conflict', `The name server has another zone ${spec.name}.`);
  if (observation.state !== 'present' || !observation.upToDate) {
    const zone = textOf(id, spec);
    // Persist first: what is served now must be served after a restart too.
    await store.save(id, spec);
    await answering.put([zone]);
    enter(state, id, spec, zone.text);
    state.changed(spec.name);
  }
  return { ref: { driver: NAME, name: id } };
}

async function remove({ store, answering, byId, idByName }: State, id: string, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  await answering.remove(id);
  await store.remove(id);
  const served = byId.get(id);
  byId.delete(id);
  if (served && idByName.get(served.name) === id) idByName.delete(served.name);
}
