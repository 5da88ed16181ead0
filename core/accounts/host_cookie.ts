// Cookies of the platform. They are not readable by scripts, and not sent with cross-site requests.
/** The configuration, of which accounts know no more. */
export interface Address {
  baseUrl: string;
}

/** `__Host-` with an https base URL: browsers then bind the cookie to this host, this path and TLS. */
function nameOf(config: Address, name: string): string {
  return isSecure(config) ? `__Host-${name}` : name;
}

/** The value in a Cookie header (RFC 6265 section 4.2); null where it is absent. */
export function readHostCookie(config: Address, name: string, header: string | undefined): string | null {
  const start = `${nameOf(config, name)}=`;
  const pair = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(start));
  return pair?.slice(start.length) || null;
}

/**
 * The Set-Cookie header. `Lax`: it is sent when a link from another site is followed. @param maxAgeSeconds 0 clears the
 * cookie
 */
export function hostCookie(config: Address, name: string, value: string, maxAgeSeconds: number): string {
  const flags = ['Path=/', 'HttpOnly', 'SameSite=Lax', ...(isSecure(config) ? ['Secure'] : [])];
  return [`${nameOf(config, name)}=${value}`, `Max-Age=${maxAgeSeconds}`, ...flags].join('; ');
}

function isSecure({ baseUrl }: Address): boolean {
  return baseUrl.startsWith('https:');
}
