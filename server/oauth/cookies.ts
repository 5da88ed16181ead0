// Names of the cookies of oidc-provider. Behind https each gets the prefix `__Host-`, so that no other host of the
// domain, such as an application of a tenant, can set one. That prefix needs the path `/`; the library tells its
// authorisations apart by their paths, so their ids become a part of the names.
import type { RequestHandler } from 'express';
import type { OutgoingHttpHeader } from 'node:http';
import type { Config } from '../../core/config';

const PREFIX = '__Host-';
/** Those of one authorisation, and the one of the browser. */
const NAMES = /^(oauth_(?:interaction|resume)|oauth_session)(?:-([\w-]+))?(\.sig)?$/;
/** Further ones end: a page of another site could begin so many that the headers of the browser get too large. */
const AUTHORISATIONS_MAX = 5;

type Address = Pick<Config, 'baseUrl'>;

/** For all routes below /oauth. @param config read at each request, since the port may not be known before */
export function hostCookies(config: () => Address): RequestHandler {
  return (request, response, next) => {
    if (!config().baseUrl.startsWith('https:')) return next();
    const uid = request.path.split('/').pop() as string;
    const pairs = pairsOf(request.headers.cookie);
    request.headers.cookie = pairs.flatMap((pair) => libraryPairOf(pair, uid) ?? []).join('; ');
    const { writeHead } = response;
    response.writeHead = ((status: number, ...rest: unknown[]) => {
      const lines = [response.getHeader('Set-Cookie') ?? []].flat().map(String);
      const renamed = [...lines.flatMap((line) => browserLinesOf(line, uid)), ...expiredCookiesOf(pairs, lines)];
      if (renamed.length) response.setHeader('Set-Cookie', renamed as OutgoingHttpHeader as string[]);
      return (writeHead as (...all: unknown[]) => typeof response).call(response, status, ...rest);
    }) as typeof writeHead;
    next();
  };
}

function pairsOf(header: string | undefined): string[] {
  return (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter(Boolean);
}

/** A pair of the Cookie header as the library knows it; null for one that is not for this request. */
function libraryPairOf(pair: string, uid: string): string | null {
  const [name = ''] = pair.split('=', 1);
  const isPrefixed = name.startsWith(PREFIX);
  const [, kind, of, signature = ''] = NAMES.exec(isPrefixed ? name.slice(PREFIX.length) : name) ?? [];
  if (kind === undefined) return pair;
  return isPrefixed && (of === undefined || of === uid) ? kind + signature + pair.slice(name.length) : null;
}

/** A line of Set-Cookie as browsers get it. */
function browserLinesOf(line: string, uid: string): string[] {
  const [name = ''] = line.split('=', 1);
  const [, kind, , signature = ''] = NAMES.exec(name) ?? [];
  if (kind === undefined) return [line];
  const [, path = '/'] = /; path=([^;]*)/i.exec(line) ?? [];
  const of = kind === 'oauth_session' ? '' : `-${path === '/' ? uid : path.split('/').pop()}`;
  const rest = line.slice(name.length).replace(/; (?:path=[^;]*|domain=[^;]*|secure)/gi, '');
  return [`${PREFIX}${kind}${of}${signature}${rest}; path=/; secure`];
}

/** Ends the cookies of the oldest authorisations. Browsers send those first. */
function expiredCookiesOf(pairs: readonly string[], lines: readonly string[]): string[] {
  if (!lines.some((line) => line.startsWith('oauth_interaction='))) return [];
  const names = pairs.map((pair) => pair.split('=', 1)[0] as string);
  const uids = names.flatMap((name) => /^__Host-oauth_interaction-([\w-]+)$/.exec(name)?.[1] ?? []);
  const old = uids.slice(0, Math.max(0, uids.length + 1 - AUTHORISATIONS_MAX));
  const ended = names.filter((name) => old.includes(NAMES.exec(name.slice(PREFIX.length))?.[2] ?? ''));
  return ended.map((name) => `${name}=; path=/; secure; httponly; max-age=0`);
}
