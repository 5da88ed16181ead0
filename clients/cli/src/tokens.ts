// The token of a command: where it comes from, and a new one when it ends.
import { credentialsLock, readCredentials, writeCredentials, type Login } from './config/credentials';
import { withLock } from './config/lock';
import { EXIT, Failure } from './failure';
import { refreshTokens, type Tokens } from './oauth';

/** A token that ends so soon is replaced before it is used. */
const MARGIN_MS = 60_000;

export interface TokenSource {
  /** @throws Failure where nobody is logged in */
  read(): Promise<string>;
  /** A new token in place of one that the server refused; undefined where there is none. */
  renew(refused: string): Promise<string | undefined>;
}

export function fixedToken(token: string): TokenSource {
  return { read: async () => token, renew: async () => undefined };
}

/** The login at the server, from the file of the person. */
export function storedToken(server: string): TokenSource {
  return {
    async read() {
      const login = requireLogin(server);
      if (!login.refresh_token || (login.expires_at ?? Infinity) > Date.now() + MARGIN_MS) return login.access_token;
      return refresh(server, login.access_token);
    },
    async renew(refused) {
      return requireLogin(server).refresh_token ? refresh(server, refused) : undefined;
    },
  };
}

function requireLogin(server: string): Login {
  const login = readCredentials().servers[server];
  if (login) return login;
  throw new Failure(`You are not logged in at ${server}.`, EXIT.denied, [`Run: svc login --url ${server}`]);
}

/**
 * A refresh token works once, and a second use ends all that came of it: one process refreshes, the others find what
 * it has got.
 */
function refresh(server: string, old: string): Promise<string> {
  return withLock(credentialsLock(), async () => {
    const login = requireLogin(server);
    if (login.access_token !== old) return login.access_token;
    const tokens = await refreshTokens(server, login.refresh_token as string);
    saveLogin(server, { ...login, ...loginOf(tokens) });
    return tokens.access_token;
  });
}

export function loginOf(tokens: Tokens): Login {
  return {
    kind: 'oauth',
    access_token: tokens.access_token,
    ...(tokens.refresh_token && { refresh_token: tokens.refresh_token }),
    ...(tokens.expires_in !== undefined && { expires_at: Date.now() + tokens.expires_in * 1000 }),
    ...(tokens.refresh_token_expires_in !== undefined && {
      login_expires_at: Date.now() + tokens.refresh_token_expires_in * 1000,
    }),
  };
}

/** Called while the lock is held. */
export function saveLogin(server: string, login: Login): void {
  const { servers, current = server } = readCredentials();
  writeCredentials({ current, servers: { ...servers, [server]: login } });
}
