// The cookie that binds a login at another provider to the browser that began it. Without it, a link with somebody
// else's code would log a person in as somebody else.
import type { IncomingMessage } from 'node:http';
import type { Config } from '../../core/config';
import { mintSecret } from '../../core/tokens';
import { ATTEMPT_MINUTES } from '../../models/login/attempt';

const FORM = /^lgb_[\w-]{43}$/;

function nameOf({ baseUrl }: Pick<Config, 'baseUrl'>): string {
  return baseUrl.startsWith('https:') ? '__Host-platform_login' : 'platform_login';
}

/** The secret of the browser; null where it has none. */
export function readBrowserSecret(config: Pick<Config, 'baseUrl'>, { headers }: IncomingMessage): string | null {
  const start = `${nameOf(config)}=`;
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  const secret = pairs.find((pair) => pair.startsWith(start))?.slice(start.length) ?? '';
  return FORM.test(secret) ? secret : null;
}

/** Several logins of one browser at the same time share it. */
export function browserSecret(config: Pick<Config, 'baseUrl'>, request: IncomingMessage): string {
  return readBrowserSecret(config, request) ?? mintSecret('lgb_');
}

/** The Set-Cookie header. `Lax`: the browser comes back by a link of the provider. */
export function browserCookie(config: Pick<Config, 'baseUrl'>, secret: string): string {
  const secure = config.baseUrl.startsWith('https:') ? ['Secure'] : [];
  const flags = ['Path=/', 'HttpOnly', 'SameSite=Lax', ...secure];
  return [`${nameOf(config)}=${secret}`, `Max-Age=${ATTEMPT_MINUTES * 60}`, ...flags].join('; ');
}
