// The door of the name server: all that other rooms and engines may import of it.
export {
  ROOT_SERVERS,
  readDelegation,
  readRecords,
  readWholeZone,
  type Delegation,
  type DelegationOptions,
} from './delegation';
export { openEmbeddedNameserver, type EmbeddedNameserver } from './driver';
export type { CountersByZone, NameserverDriver, ZoneCounters, ZoneObserved, ZoneRecord, ZoneSpec } from './nameserver';
