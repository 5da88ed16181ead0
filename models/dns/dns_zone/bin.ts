// DNS zones in the bin. Records stay with their zone; those that the platform keeps for other resources are brought up
// to date by the jobs of these.
import type { Context } from '../../../core/context';
import type { Bin } from '../../base/bin';
import type { DnsZone } from '../dns_zone';
import { wakeRecordOwners } from '../dns_record/owners';
import { isClaimedElsewhere, requireUndelegated, wakeClaims } from './claims';

const CONTESTED =
  'Another project has claimed the name meanwhile. The zone is answered once the parent zone delegates to its name ' +
  'servers.';

export const zoneBin: Bin<DnsZone> = {
  nameFormat: null,
  async restore(ctx: Context, zone, memo) {
    await requireUndelegated(ctx, zone.name);
    const isContested = await isClaimedElsewhere(ctx.sql, zone);
    // Whether the parent zone delegated to it.
    const { status } = memo as Pick<DnsZone, 'status'>;
    // The parent zone is asked at once: while the zone was away, the delegation may have moved.
    const look = { last_checked_at: null, elsewhere_since: null };
    // A serial that was served before is too low for secondaries (RFC 1982); the loop raises it above the last one.
    await zone.update(ctx, { ...look, status: isContested ? 'pending' : status, serial: zone.nextSerial() });
    await wakeClaims(ctx.sql, zone);
    await wakeRecordOwners(ctx.sql, zone);
    return isContested ? [CONTESTED] : [];
  },
};
