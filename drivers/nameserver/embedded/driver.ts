// The embedded name server: it answers from memory, and keeps a copy of its zones on disk.
import {
  asDriverErrors,
  checkpoint,
  DriverError,
  type Desired,
  type DriverContext,
  type Observation,
  type Owned,
} from '../../driver';
import type { DnsQuestions } from '../../dns';
import type { CountersByZone, NameserverDriver, ZoneObserved, ZoneSpec } from '../../nameserver';
import { openAliases } from './aliases';
import { keyOfLabels } from './names';
import { openNotifier, type Notifier, type Secondary } from './notify';
import { openResponder, type Responder } from './responder';
import { openSockets, type NameserverSockets } from './sockets';
import { openZoneStore, type KeySealer, type ZoneStore } from './store';
import type { TsigKey } from './tsig';
import { buildZone, type Zone } from './zone';

export interface EmbeddedNameserverOptions {
  /** Absolute path of the copies of the zones. */
  directory: string;
  /** Addresses to listen on. */
  addresses: string[];
  /** Ports to try, in this order. */
  ports: number[];
  sealer: KeySealer;
  questions: Pick<DnsQuestions, 'a' | 'aaaa'>;
  /** Answers a second for one network of clients without a cookie. */
  responsesPerSecond: number;
  /** Zones of the platform itself, always served. */
  own: ZoneSpec[];
  /** Servers that get whole zones, and the key that transfers are signed with. */
  secondaries?: readonly Secondary[];
  transferKey?: TsigKey | null;
}

export interface EmbeddedNameserver extends NameserverDriver {
  /** The port it listens on. */
  port: number;
  close(): Promise<void>;
}

const NAME = 'embedded';

interface State {
  store: ZoneStore;
  responder: Responder;
  byId: Map<string, Zone>;
  notifier: Notifier;
}

/** @throws the errno of the last port where none can be bound */
export async function openEmbeddedNameserver(options: EmbeddedNameserverOptions): Promise<EmbeddedNameserver> {
  const store = await openZoneStore(options.directory, options.sealer);
  const lookUpAlias = openAliases(options.questions);
  const { responsesPerSecond, secondaries = [], transferKey: key = null } = options;
  const transfers = { key, addresses: secondaries.map(({ address }) => address) };
  const responder = openResponder({ responsesPerSecond, lookUpAlias, transfers });
  const state: State = { store, responder, byId: new Map(), notifier: openNotifier(secondaries, key) };
  for (const spec of options.own) responder.zones.put(buildZone(`own:${spec.name}`, spec, null));
  for await (const { id, spec } of store.load()) serve(state, id, spec);
  const { sockets, port } = await bind(options, responder);
  // What changed just before the last end may not have been told.
  for (const { spec } of responder.zones.values()) state.notifier.notify(spec.name);
  return {
    ...driverOf(state),
    port,
    async close() {
      state.notifier.close();
      await sockets.close();
    },
  };
}

async function bind(
  { ports, addresses }: EmbeddedNameserverOptions,
  responder: Responder,
): Promise<{ sockets: NameserverSockets; port: number }> {
  let failure: unknown = new Error('no port to listen on');
  for (const port of ports) {
    try {
      return { sockets: await openSockets(port, addresses, responder), port };
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function driverOf(state: State): NameserverDriver {
  return {
    name: NAME,
    async fingerprint() {
      return { healthy: true, reason: null, facts: { zones: state.byId.size, dnssec: true } };
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
    async takeCounters(): Promise<CountersByZone> {
      return state.responder.takeCounters();
    },
  };
}

function observe({ byId, responder }: State, id: string, spec: ZoneSpec): Observation<ZoneObserved> {
  const zone = byId.get(id);
  const served = responder.zones.find(keyOf(spec));
  if (!zone && served) return { state: 'foreign', detail: `${served.id} is served under the name ${spec.name}` };
  if (!zone) return { state: 'absent' };
  const { serial, records, keys } = zone.spec;
  const observed = { serial, record_count: records.length, is_signed: keys.length > 0 };
  const isSame = JSON.stringify(zone.spec) === JSON.stringify(spec);
  return {
    state: 'present',
    upToDate: isSame,
    observed,
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
  const key = keyOf(spec);
  const other = state.responder.zones.find(key);
  // Another claim may be on its way out.
  if (other && other.id !== id) throw new DriverError('conflict', `The name server has another zone ${spec.name}.`);
  if (observation.state !== 'present' || !observation.upToDate) {
    // On disk first: what was answered once is answered after a restart too.
    await state.store.save(id, spec);
    serve(state, id, spec);
    state.notifier.notify(spec.name);
  }
  return { ref: { driver: NAME, name: id } };
}

async function remove(state: State, id: string, ctx: DriverContext): Promise<void> {
  checkpoint(ctx);
  const zone = state.byId.get(id);
  state.byId.delete(id);
  if (zone) state.responder.zones.remove(zone);
  await state.store.remove(id);
}

function serve({ responder, byId }: State, id: string, spec: ZoneSpec): void {
  const zone = buildZone(id, spec, byId.get(id) ?? null);
  byId.set(id, zone);
  responder.zones.put(zone);
}

function keyOf({ name }: ZoneSpec): string {
  return keyOfLabels(name.split('.'));
}
