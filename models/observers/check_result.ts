import type { Context } from '../../core/context';
import type { CheckTimings } from '../../core/protocols/checks';
import type { CheckStatus, QueryListObserverResultsArgs } from '../../schema/types';
import { page, type Page, type PageArguments } from '../base/page';
import { Resource } from '../base/resource';

/** What one check found. Kept for 30 days, in partitions of a day. */
export class CheckResult extends Resource {
  static readonly table = 'check_results';
  static readonly kind = 'check_result';
  static readonly idPrefix = 'chk';
  static override readonly filters = {
    status: 'status = ?',
    region: 'region = ?',
    since: 'checked_at >= ?',
    until: 'checked_at < ?',
  };

  declare observer_id: string;
  declare checked_at: string;
  declare status: CheckStatus;
  declare region: string;
  declare response_time_ms: number | null;
  declare status_code: number | null;
  declare value: number | null;
  declare error: string | null;
  declare incident_id: string | null;
  declare timings: CheckTimings | null;
  declare certificate_expires_at: string | null;

  /** Check results of an observer. */
  static list(ctx: Context, { id: observer_id, ...args }: QueryListObserverResultsArgs): Promise<Page<CheckResult>> {
    return page(CheckResult, ctx, args as PageArguments, { observer_id });
  }
}
