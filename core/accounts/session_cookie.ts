// The cookie of a dashboard session.
import { hostCookie, readHostCookie, type Address } from './host_cookie';

const NAME = 'platform_session';

/** The session secret in a Cookie header; null where it is absent. */
export function readSessionCookie(config: Address, header: string | undefined): string | null {
  return readHostCookie(config, NAME, header);
}

/** The Set-Cookie header of a new session. @param maxAgeSeconds 0 clears the cookie */
export function sessionCookie(config: Address, secret: string, maxAgeSeconds: number): string {
  return hostCookie(config, NAME, secret, maxAgeSeconds);
}
