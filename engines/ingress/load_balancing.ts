// Selection of the instance for a request.
import { isTrusted } from './confirmation';
import type { Site } from './route_table';
import type { Upstream } from './upstream';

const COOKIE = 'platform_instance';
const COOKIE_VALUE = /(?:^|;\s*)platform_instance=([A-Za-z0-9_-]{22})(?:;|$)/;

/**
 * Fewest open requests first, round-robin among equals; null where no instance is left. `tried` have refused the
 * request.
 */
export function chooseUpstream(
  site: Site,
  tried: Upstream[],
  cookie: string | undefined,
  now: number,
): Upstream | null {
  const { upstreams } = site;
  const sticky = site.route.sticky ? stickyUpstream(site, tried, cookie, now) : null;
  if (sticky !== null) return sticky;
  let best: Upstream | null = null;
  site.nextIndex = site.nextIndex + 1 < upstreams.length ? site.nextIndex + 1 : 0;
  for (let index = 0; index < upstreams.length; index += 1) {
    const upstream = upstreams[(site.nextIndex + index) % upstreams.length] as Upstream;
    if (upstream.drained || !isTrusted(upstream, now) || tried.includes(upstream)) continue;
    if (best === null || isBetter(upstream, best, now)) best = upstream;
  }
  return best;
}

/** The sticky session cookie; null where it is disabled or already present. */
export function stickyCookie(
  site: Site,
  upstream: Upstream,
  cookie: string | undefined,
  scheme: string,
): string | null {
  if (!site.route.sticky || stickyTokenIn(cookie) === upstream.stickyToken) return null;
  return `${COOKIE}=${upstream.stickyToken}; Path=/; HttpOnly; SameSite=Lax${scheme === 'https' ? '; Secure' : ''}`;
}

function stickyUpstream(site: Site, tried: Upstream[], cookie: string | undefined, now: number): Upstream | null {
  const token = stickyTokenIn(cookie);
  if (token === undefined) return null;
  return (
    site.upstreams.find(
      (upstream) =>
        upstream.stickyToken === token &&
        upstream.unreachableSince === null &&
        isTrusted(upstream, now) &&
        !upstream.drained &&
        !tried.includes(upstream),
    ) ?? null
  );
}

function stickyTokenIn(cookie: string | undefined): string | undefined {
  return cookie === undefined ? undefined : COOKIE_VALUE.exec(cookie)?.[1];
}

function isBetter(one: Upstream, other: Upstream, now: number): boolean {
  const isUnreachable = one.unreachableSince !== null;
  if (isUnreachable !== (other.unreachableSince !== null)) return !isUnreachable;
  const avoided = one.avoidUntil > now;
  if (avoided !== other.avoidUntil > now) return !avoided;
  return one.open < other.open;
}
