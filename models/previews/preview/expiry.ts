// When a preview is removed.
import { validationFailed } from '../../../core/errors';
import { limits } from '../../../core/limits';
import type { Application } from '../../applications/application';
import { settingsOf } from '../../applications/application_settings';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The requested expiry, else the default of the application's settings; null = never.
 * @param requested RFC 3339; undefined = not given
 * @throws validation_failed unless it is between one hour and 30 days ahead
 */
export function expiryOf(
  application: Application,
  requested: string | null | undefined,
  now = new Date(),
): string | null {
  if (requested === null) return null;
  if (requested === undefined) return afterDays(settingsOf(application).previews.expire_after_days ?? null, now);
  const { previewHoursMin, previewDaysMax } = limits;
  const ahead = Date.parse(requested) - now.getTime();
  if (ahead < previewHoursMin * HOUR_MS) throw mistake('too_small', `must be at least ${previewHoursMin} hour ahead`);
  if (ahead > previewDaysMax * DAY_MS) throw mistake('too_large', `must be at most ${previewDaysMax} days ahead`);
  return requested;
}

function afterDays(days: number | null, now: Date): string | null {
  return days === null ? null : new Date(now.getTime() + days * DAY_MS).toISOString();
}

function mistake(code: 'too_small' | 'too_large', detail: string): Error {
  return validationFailed([{ field: 'expires_at', code, detail }]);
}
