// What the cache knows of an object.
import type { HeaderFields } from '../edge/headers';
import type { Freshness } from '../edge/policy';
import type { StoredBytes } from './memory';

export type Coding = 'br' | 'gzip';

/** Metadata of an object. */
export interface Description extends Freshness {
  zone_id: string;
  site: string;
  /** Key of the address: path, and the query string if it is significant. */
  key: string;
  status: number;
  headers: HeaderFields;
  tags: string[];
  /** Values of the request header fields that the response varies on. */
  vary: Record<string, string>;
}

export interface StoredObject extends Description, StoredBytes {
  /** Compressed forms that were requested so far. */
  forms: Partial<Record<Coding, StoredBytes>>;
}

export type Address = Pick<Description, 'site' | 'key'>;
