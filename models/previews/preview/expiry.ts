// When a preview is removed.
import { validationFailed } from '../../../core/errors';
import { limits } from '../../../core/limits';
import type { Application } from '../../applications/application';
import { settingsOf } from '../../applications/application_settings';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The time that was asked for, else that of the application's settings; null = never.
 * @param wanted RFC 3339; undefined = not asked for
 * @throws validation_failed unless it is between one hour and 30 days ahead
 */
export function expiryOf(application: Application, wanted: string | null | undefined, now = new Date()): string | null {
  if (wanted === null) return null;
  if (wanted === undefined) return afterDays(settingsOf(application).previews.expire_after_days ?? null, now);
  const { previewHoursMin, previewDaysMax } = limits;
  const ahead = Date.parse(wanted) - now.getTime();
  if (ahead < previewHoursMin * HOUR_MS) throw mistake('too_small', `must be at least ${previewHoursMin} hour ahead`);
  if (ahead > previewDaysMax * DAY_MS) throw mistake('too_large', `must be at most ${previewDaysMax} days ahead`);
  return wanted;
}

function afterDays(days: number | null, now: Date): string | null {
  return days === null ? null : new Date(now.getTime() + days * DAY_MS).toISOString();
}

function mistake(code: 'too_small' | 'too_large', detail: string): Error {
  return validationFailed([{ field: 'expires_at', code, detail }]);
}
