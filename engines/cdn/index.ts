// The door of the CDN: all that other rooms and engines may import of it.
export { openEmbeddedCdn, type EmbeddedCdnLimits, type EmbeddedCdnOptions } from './cache/driver';
export {
  EDGE_FIELD,
  type CdnCacheRules,
  type CdnDriver,
  type CdnOriginSpec,
  type CdnTraffic,
  type CdnZoneSpec,
  type Edge,
  type PurgeSpec,
} from './cdn';
export type { CdnEngine, StoredZone, StoredZones } from './edge/edge';
