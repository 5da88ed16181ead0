// Normalisation of e-mail addresses from providers.
import { formats } from '../../core/formats/formats';

/**
 * In lower case, as in user rows; null for an invalid address. ASCII only: the lower case of the Kelvin sign is the
 * letter k, which would match another person's address.
 */
export function normalProvidedEmail(given: unknown): string | null {
  if (typeof given !== 'string' || !/^[\x21-\x7e]+$/.test(given)) return null;
  return formats.email(given)?.value.toLowerCase() ?? null;
}

/** A name that can be displayed; null for any other value. */
export function normalProvidedName(given: unknown): string | null {
  return typeof given === 'string' ? (formats.label(given.slice(0, 100))?.value ?? null) : null;
}
