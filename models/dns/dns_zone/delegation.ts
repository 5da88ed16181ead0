// The delegation of a zone in its parent zone.
import type { DnsDelegationState } from '../../../schema/types';

/** Name servers that the parent lists, in lower case without a trailing dot, and the digests of its DS records. */
export interface DelegationFindings {
  name_servers: string[];
  /** `key_tag algorithm digest_type DIGEST`. */
  ds_records: string[];
  /** Where the zone above is delegated to this platform: its name, and the name servers that its parent lists. */
  own_parent: { zone: string; name_servers: string[] } | null;
}

/** @param observed null where it was never checked */
export function delegationState(own: readonly string[], observed: readonly string[] | null): DnsDelegationState {
  if (observed === null) return 'unknown';
  if (!observed.length) return 'not_delegated';
  const ours = observed.filter((name) => own.includes(name)).length;
  if (!ours) return 'elsewhere';
  return ours === observed.length ? 'delegated' : 'partial';
}
