// The cookie of a dashboard session. Scripts can't read it, other sites don't send it along with their requests.
import type { Config } from './config';

/** `__Host-` where the platform is reached by https: browsers then bind the cookie to this host, this path and TLS. */
function sessionCookieName(config: Pick<Config, 'baseUrl'>): string {
  return isSecure(config) ? '__Host-platform_session' : 'platform_session';
}

/** The session's secret in a Cookie header (RFC 6265 section 4.2), null where there is none. */
export function readSessionCookie(config: Pick<Config, 'baseUrl'>, header: string | undefined): string | null {
  const name = `${sessionCookieName(config)}=`;
  const pair = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(name));
  return pair?.slice(name.length) || null;
}

/** The Set-Cookie header that begins a session. @param maxAgeSeconds 0 clears the cookie */
export function sessionCookie(config: Pick<Config, 'baseUrl'>, secret: string, maxAgeSeconds: number): string {
  const flags = ['Path=/', 'HttpOnly', 'SameSite=Lax', ...(isSecure(config) ? ['Secure'] : [])];
  return [`${sessionCookieName(config)}=${secret}`, `Max-Age=${maxAgeSeconds}`, ...flags].join('; ');
}

function isSecure({ baseUrl }: Pick<Config, 'baseUrl'>): boolean {
  return baseUrl.startsWith('https:');
}
