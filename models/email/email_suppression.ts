import type { Context } from '../../core/context';
import { limits } from '../../core/limits';
import type { CreateEmailSuppressionInput } from '../../schema/types';
import { Resource } from '../base/resource';
import type { EmailRelayZone } from './email_relay_zone';

/** A recipient on the suppression list of a relay zone: the zone sends no mail to it. */
export class EmailSuppression extends Resource {
  static readonly table = 'email_suppressions';
  static readonly kind = 'email_suppression';
  static readonly idPrefix = 'sup';
  static override readonly parentLimit = {
    column: 'email_relay_zone_id',
    max: limits.suppressionsPerRelayZone,
    resource: 'email_suppressions',
    parent: 'A relay zone',
    rows: 'suppressions',
    where: `reason = 'manual'`,
  };
  static override readonly filters = {
    email: 'email = lower(?)',
    reason: 'reason = ?',
    since: 'created_at >= ?',
    until: 'created_at < ?',
  };

  declare email_relay_zone_id: string;
  declare email: string;
  declare reason: 'bounce' | 'complaint' | 'manual';
  declare detail: string | null;

  /** The zone must be held. @throws already_exists, quota_exceeded */
  static async create(
    ctx: Context,
    zone: Pick<EmailRelayZone, 'id'>,
    { email, detail }: CreateEmailSuppressionInput,
  ): Promise<EmailSuppression> {
    return EmailSuppression.insert(ctx, {
      email_relay_zone_id: zone.id,
      email: email.toLowerCase(),
      reason: 'manual',
      detail: detail ?? null,
    });
  }
}
