// Addresses of people as providers write them.
import { formats } from '../../core/formats/formats';

/**
 * In lower case, as users have theirs; null for what is no address. ASCII only: the Kelvin sign, in lower case, would
 * be the letter k of somebody else's address.
 */
export function normalProvidedEmail(given: unknown): string | null {
  if (typeof given !== 'string' || !/^[\x21-\x7e]+$/.test(given)) return null;
  return formats.email(given)?.value.toLowerCase() ?? null;
}

/** A name that can be shown; null for everything else. */
export function normalProvidedName(given: unknown): string | null {
  return typeof given === 'string' ? (formats.label(given.slice(0, 100))?.value ?? null) : null;
}
