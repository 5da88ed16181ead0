// The cookie that binds a login at another provider to the browser that began it. It prevents login CSRF: a link with
// an attacker's code would otherwise log a person in to the attacker's account.
import type { IncomingMessage } from 'node:http';
import type { Config } from '../../core/config';
import { hostCookie, readHostCookie } from '../../core/accounts/host_cookie';
import { mintSecret } from '../../core/accounts/tokens';
import { ATTEMPT_MINUTES } from '../../models/identity/login/attempt';

const NAME = 'platform_login';
const FORM = /^lgb_[\w-]{43}$/;

/** The secret of the browser; null where it has none. */
export function readBrowserSecret(config: Pick<Config, 'baseUrl'>, { headers }: IncomingMessage): string | null {
  const secret = readHostCookie(config, NAME, headers.cookie);
  return secret !== null && FORM.test(secret) ? secret : null;
}

/** Several logins of one browser at the same time share it. */
export function browserSecret(config: Pick<Config, 'baseUrl'>, request: IncomingMessage): string {
  return readBrowserSecret(config, request) ?? mintSecret('lgb_');
}

/** The Set-Cookie header: the browser comes back by a link of the provider. */
export function browserCookie(config: Pick<Config, 'baseUrl'>, secret: string): string {
  return hostCookie(config, NAME, secret, ATTEMPT_MINUTES * 60);
}
