// The domain of an installation, as its operator types it.
import { isIP } from 'node:net';
import { getPublicSuffix } from 'tldts';
import { hostNameOf } from '../../core/protocols/domain_names';
import { SetupError } from './setup_error';

const AS_GIVEN = { extractHostname: false, validateHostname: false };
/** Names that the public DNS never has (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and ICANN for private use). */
const PRIVATE = /(?:^|\.)(?:localhost|local|test|invalid|internal|home\.arpa|lan|alt|onion)$/;

/**
 * The name in its DNS form: upper case, a final dot and international names are converted.
 * @param option for the message: `--domain`
 * @throws SetupError
 */
export function parseDomain(text: string, option: string): string {
  const given = text.trim();
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given) || /[/@]/.test(given)) throw new SetupError(notAlone(given, option));
  if (isIP(given.replace(/^\[|\]$/g, '')))
    throw new SetupError(
      `${option} ${given} is an IP address. Certificates and host names of applications need a domain: register one, ` +
        'or use one that you have.',
    );
  if (given.startsWith('*.'))
    throw new SetupError(`${option} ${given} is a wildcard. Give the domain: ${option} ${given.slice(2)}`);
  const name = hostNameOf(given);
  if (name === null) throw new SetupError(`${option} ${given} is not a domain. Give one such as example.com.`);
  if (PRIVATE.test(name))
    throw new SetupError(`${option} ${name} is not in the public DNS, so no certificate authority can check it.`);
  if (getPublicSuffix(name, AS_GIVEN) === name)
    throw new SetupError(`${option} ${name} is a public suffix, which nobody owns. Give a domain below it.`);
  return name;
}

function notAlone(given: string, option: string): string {
  const whole = given.includes('://') ? given : `https://${given}`;
  const host = URL.canParse(whole) ? new URL(whole).hostname : '';
  return `${option} takes a domain alone, not a URL or an address of mail${host ? `: ${option} ${host}` : '.'}`;
}
