// The cookie by which a browser is known where somebody has logged in before: guesses of strangers do not lock it out
// (OWASP, device cookies). It opens nothing by itself.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { SecretBox } from '../secrets';
import { hostCookie, readHostCookie, type Address } from './host_cookie';

interface Holder {
  config: Address;
  secrets: Pick<SecretBox, 'subKey'>;
}

const NAME = 'platform_known';
const DAYS = 180;
const DAY_SECONDS = 86_400;
/** Id of the browser, the second at which it is forgotten, and a signature that binds both to an e-mail address. */
const FORM = /^([\w-]{22})\.(\d{1,12})\.([\w-]{43})$/;

/** The Set-Cookie header for a browser in which the person with this e-mail address was logged in. */
export function knownBrowserCookie(holder: Holder, email: string): string {
  const id = randomBytes(16).toString('base64url');
  const until = String(nowSeconds() + DAYS * DAY_SECONDS);
  const value = [id, until, signatureOf(holder, email, id, until).toString('base64url')].join('.');
  return hostCookie(holder.config, NAME, value, DAYS * DAY_SECONDS);
}

/** The id of a browser that is known for an e-mail address; null for a stranger. @param header the Cookie header */
export function readKnownBrowser(holder: Holder, email: string, header: string | undefined): string | null {
  const [, id = '', until = '', signature = ''] = FORM.exec(readHostCookie(holder.config, NAME, header) ?? '') ?? [];
  if (Number(until) < nowSeconds()) return null;
  return timingSafeEqual(Buffer.from(signature, 'base64url'), signatureOf(holder, email, id, until)) ? id : null;
}

function signatureOf({ secrets }: Holder, email: string, id: string, until: string): Buffer {
  return createHmac('sha256', secrets.subKey('known browsers')).update(`${id}.${until}.${email}`).digest();
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
