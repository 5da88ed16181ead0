// login, logout, whoami.
import { spawn } from 'node:child_process';
import { choice, command, sessionCommand, toggle } from '../command';
import { credentialsLock, readCredentials, writeCredentials, type Login } from '../config/credentials';
import { withLock } from '../config/lock';
import { EXIT, Failure, usageFailure } from '../failure';
import {
  ALL_SCOPES,
  awaitDeviceLogin,
  beginDeviceLogin,
  findEndpoints,
  logInWithBrowser,
  revokeToken,
  type Endpoints,
} from '../oauth';
import { notice } from '../output/notice';
import { printOne, type Row } from '../output/print';
import { askSecret, canAsk, readStandardInput } from '../output/terminal';
import { openSession, serverOf, type Session } from '../session';
import { browserInvocation } from '../system';
import { fixedToken, loginOf, saveLogin } from '../tokens';

type LoginFlags = {
  readonly browser?: boolean | undefined;
  readonly scope?: readonly (typeof ALL_SCOPES)[number][] | undefined;
};

const MAY_NOT_DELETE =
  'This login may not delete. To delete with svc, log in again and tick “Delete” on the page that asks.';

interface Me {
  token: { kind: string; scopes: string[] | null; may_destroy?: boolean; expires_at: string | null; name: string };
  user: { name: string; email: string } | null;
  project: { id: string; name: string } | null;
}

export const login = command<LoginFlags>({
  brief: 'Log in to a server',
  text:
    'Shows a code to enter on a page of the server. With --browser, the page opens on this computer and no code is ' +
    'needed. With --token, an API key is kept instead; `--token -` reads it from standard input, which keeps it out ' +
    'of the list of processes. In CI, no login is needed: set SVC_URL and SVC_TOKEN.',
  target: 'server',
  output: false,
  flags: {
    browser: toggle('Log in with a browser on this computer'),
    scope: { ...choice('Scopes to request (default: all)', ALL_SCOPES), variadic: true },
  },
  async run(flags) {
    const server = chooseLoginServer(flags.url);
    if (server.startsWith('http:') && !/^http:\/\/(localhost|127\.|\[::1\])/.test(server))
      notice(`Warning: ${server} is not encrypted. Anybody on the network path can read your token.`);
    const found = flags.token === undefined ? await logIn(server, flags) : await keyLogin(flags.token);
    await keepLogin(server, found);
  },
});

function chooseLoginServer(url: string | undefined): string {
  const given = url ?? process.env.SVC_URL ?? readCredentials().current;
  if (given) return serverOf(given);
  throw usageFailure('Which server? Pass its address.', 'Example: svc login --url https://platform.example.com');
}

async function keyLogin(given: string): Promise<Login> {
  const read = canAsk() ? askSecret('Token: ') : readStandardInput();
  const token = (given === '-' ? await read : given).trim();
  if (!token) throw usageFailure('The token is empty.');
  return { kind: 'key', access_token: token };
}

async function logIn(server: string, flags: LoginFlags): Promise<Login> {
  const endpoints = await findEndpoints(server);
  const scope = [...(flags.scope ?? ALL_SCOPES), 'offline_access'].join(' ');
  const tokens = flags.browser
    ? await logInWithBrowser(endpoints, scope, (url) => {
        notice(`Your browser opens this page. If it does not, open it yourself:\n${url}`);
        openInBrowser(url);
      })
    : await deviceLogin(endpoints, scope);
  return loginOf(tokens);
}

async function deviceLogin(endpoints: Endpoints, scope: string): ReturnType<typeof awaitDeviceLogin> {
  const begun = await beginDeviceLogin(endpoints, scope);
  notice(`Open ${begun.verification_uri} and enter the code ${begun.user_code}`);
  notice(`It is valid for ${Math.round(begun.expires_in / 60)} minutes. Waiting …`);
  return awaitDeviceLogin(endpoints, begun);
}

/** Opens an address with what the system has for it. Where there is nothing, nothing happens. */
export function openInBrowser(url: string): void {
  const { program, args } = browserInvocation(process.platform, process.env, url);
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.once('error', () => {});
  child.unref();
}

async function keepLogin(server: string, found: Login): Promise<void> {
  const session = {
    ...openSession({ url: server, token: found.access_token }),
    tokens: fixedToken(found.access_token),
  };
  const me = await session.request<Me>('GET', '/v2/me', { project: 'none' });
  const user = me.user?.email ?? me.project?.name ?? me.token.name;
  await withLock(credentialsLock(), async () => {
    const { servers } = readCredentials();
    const before = servers[server]?.project_id;
    writeCredentials({ current: server, servers });
    saveLogin(server, { ...found, user, ...(before && { project_id: before }) });
  });
  notice(`Logged in at ${server} as ${user}.`);
  if (me.token.may_destroy === false) notice(found.kind === 'oauth' ? MAY_NOT_DELETE : 'This key may not delete.');
  if (process.env.SVC_TOKEN) notice('SVC_TOKEN is set and wins over this login.');
}

export const logout = command({
  brief: 'Log out, and revoke the access of this computer',
  target: 'server',
  output: false,
  async run(flags) {
    const server = chooseLoginServer(flags.url);
    const found = readCredentials().servers[server];
    if (!found) throw new Failure(`You are not logged in at ${server}.`, EXIT.denied);
    // An API key is not ours to end: other programs may use it.
    const failure = found.kind === 'oauth' ? await tryRevoke(server, found) : undefined;
    await withLock(credentialsLock(), async () => {
      const { current, servers } = readCredentials();
      const { [server]: _, ...rest } = servers;
      writeCredentials({ ...(current && current !== server && { current }), servers: rest });
    });
    notice(`Logged out of ${server}.`);
    if (failure)
      throw new Failure(`The server was not told, so the token there stays valid: ${failure}`, EXIT.retry, [
        'Revoke it on the page of your keys.',
      ]);
    if (found.kind === 'key') notice('The API key itself stays valid.');
  },
});

async function tryRevoke(server: string, { refresh_token, access_token }: Login): Promise<string | undefined> {
  try {
    await revokeToken(server, refresh_token ?? access_token);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A token of a login ends within the hour and is renewed: what lasts is the login. */
function endOfLogin({ server, flags }: Session, { token }: Me): string | null {
  if (token.kind !== 'oauth' || flags.token !== undefined || process.env.SVC_TOKEN) return token.expires_at ?? null;
  const ends = readCredentials().servers[server]?.login_expires_at;
  return ends === undefined ? null : new Date(ends).toISOString();
}

function describeEnd({ token }: Me, ends: string | null): string {
  if (ends === null) return token.kind === 'oauth' ? 'svc logout, while it is used' : 'revoked';
  const days = Math.floor((Date.parse(ends) - Date.now()) / 86_400_000);
  const left = `${ends.slice(0, 16).replace('T', ' ')} UTC, in ${days} ${days === 1 ? 'day' : 'days'}`;
  return token.kind === 'oauth' && days > 0 ? `${left}; each use extends it` : left;
}

export const whoami = sessionCommand({
  brief: 'Show who you are, and what your token may do',
  target: 'server',
  async run(session, flags) {
    const me = await session.request<Row & Me>('GET', '/v2/me', { project: 'none' });
    const login_expires_at = endOfLogin(session, me);
    printOne({ ...me, login_expires_at }, flags, {
      user: 'user.email',
      name: 'user.name',
      project: 'project.name',
      token: 'token.kind',
      scopes: () => me.token.scopes?.join(' ') ?? 'all of its project',
      'may delete': () => (me.token.may_destroy === false ? 'no' : 'yes'),
      'valid until': () => describeEnd(me, login_expires_at),
      server: () => session.server,
    });
  },
});
