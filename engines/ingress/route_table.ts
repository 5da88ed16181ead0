// Routes by host name. Serving needs map look-ups only: 10,000 hosts cost as much as one.
import { HOST_NETWORK } from '../../core/outbound/network_location';
import type { IngressDriver, Route, Target, Unpin } from './ingress';
import type { Service } from './platform_services';
import { confirmUpstream, endTrust, isDoubted } from './confirmation';
import { closeIdle, openUpstream, type Upstream } from './upstream';

/** A route with its upstreams. */
export interface Site {
  route: Route;
  upstreams: Upstream[];
  application: ApplicationLoad;
  /** Start of the next round-robin search. */
  nextIndex: number;
  /** null: it is an application. */
  service: Service | null;
}

/** State shared by all routes of an application, kept when its routes change. */
export interface ApplicationLoad {
  open: number;
  /** `open` by client address. */
  openByAddress: Map<string, number>;
  sites: Site[];
  readNumber: number;
}

export interface RouteTable {
  /** Names of the platform itself, by host, and by suffix as below. They go before all others. */
  services: Map<string, Site>;
  hosts: Map<string, Site>;
  /** By suffix, e.g. `.example.com`. */
  wildcards: Map<string, Site>;
  applications: Map<string, ApplicationLoad>;
  upstreams: Map<string, Upstream>;
  /** Whether all routes were read once. Until then, an unknown host may have a route. */
  complete: boolean;
  /** Number of the last started read of routes, also of one that another process has numbered. */
  reads: number;
  /** Drained instances, which routes read before the drain must not restore. */
  drained: Map<string, number>;
  /** When the addresses of other machines were known to be those of their instances. */
  confirmedAt: number;
}

/** The label matched by `*` is repeated to instances and in redirects. */
const NAME = /^[a-z0-9_.-]{1,253}$/;
const PORT = /^(?::\d{0,5})?$/;
const DRAINED_MS = 600_000;

export function routeTable(): RouteTable {
  return {
    services: new Map(),
    hosts: new Map(),
    wildcards: new Map(),
    applications: new Map(),
    upstreams: new Map(),
    complete: false,
    reads: 0,
    drained: new Map(),
    confirmedAt: -Infinity,
  };
}

/** The site of a `Host` header: an exact match, else the wildcard one label up. */
export function findSite(table: RouteTable, authority: string): Site | null {
  return siteOfHost(table, authority) ?? siteOfHost(table, normalizeHost(authority));
}

/** Like findSite, for a lower-case name without a port. */
export function siteOfHost(table: RouteTable, host: string): Site | null {
  const dot = host.indexOf('.');
  const suffix = dot > 0 && NAME.test(host) ? host.slice(dot) : '';
  return (
    table.services.get(host) ??
    table.services.get(suffix) ??
    table.hosts.get(host) ??
    table.wildcards.get(suffix) ??
    null
  );
}

/** In lower case, without port and trailing dot; empty for an invalid host. */
export function normalizeHost(authority: string): string {
  const colon = authority.startsWith('[') ? authority.indexOf(':', authority.indexOf(']')) : authority.indexOf(':');
  if (colon >= 0 && !PORT.test(authority.slice(colon))) return '';
  const name = (colon < 0 ? authority : authority.slice(0, colon)).toLowerCase();
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

export function nextReadNumber(table: RouteTable): number {
  return (table.reads += 1);
}

export function applyRoutes(table: RouteTable, routes: Route[], reading: number): void {
  table.complete = true;
  const byApplication = grouped(routes);
  for (const id of [...table.applications.keys()]) if (!byApplication.has(id)) updateRoutes(table, id, [], reading);
  for (const [id, own] of byApplication) updateRoutes(table, id, own, reading);
}

/** The routes as another process restores them. */
export function routesOf(table: RouteTable): ReturnType<IngressDriver['routes']> {
  const routes = [...table.applications.values()].flatMap(({ sites }) => sites.map(({ route }) => route));
  // Infinity is not passed on to another process.
  const confirmedMsAgo = table.confirmedAt === -Infinity ? null : performance.now() - table.confirmedAt;
  return { routes, isComplete: table.complete, confirmedMsAgo };
}

/** Sets routes that any read replaces. What is served already is newer, and stays. */
export function restoreRoutes(table: RouteTable, routes: Route[]): void {
  if (table.complete) return;
  for (const [id, own] of grouped(routes)) if (!table.applications.has(id)) updateRoutes(table, id, own, 0);
}

export function updateRoutes(table: RouteTable, applicationId: string, routes: Route[], reading: number): void {
  const application = table.applications.get(applicationId) ?? {
    open: 0,
    openByAddress: new Map<string, number>(),
    sites: [],
    readNumber: reading,
  };
  noteRead(table, reading);
  if (reading < application.readNumber) return;
  application.readNumber = reading;
  const before = application.sites;
  application.sites = routes.map((route) => openSite(table, application, route));
  for (const site of before) removeHosts(table, site);
  for (const site of application.sites) addHosts(table, site);
  for (const site of before) for (const upstream of site.upstreams) release(table, upstream);
  if (application.sites.length > 0 || application.open > 0) table.applications.set(applicationId, application);
  else table.applications.delete(applicationId);
}

/** Sets routes that no read replaces, until the returned function is called. */
export function pinRoutes(table: RouteTable, applicationId: string, routes: Route[]): Unpin {
  updateRoutes(table, applicationId, routes, Infinity);
  return (reading = nextReadNumber(table)) => {
    const application = table.applications.get(applicationId);
    // A read that began earlier may have seen the old state.
    if (application) application.readNumber = reading;
    noteRead(table, reading);
  };
}

/** The next control plane of an ingress process numbers its reads from there. */
function noteRead(table: RouteTable, reading: number): void {
  if (reading !== Infinity) table.reads = Math.max(table.reads, reading);
}

/** @param at the later one counts */
export function confirmTable(table: RouteTable, at: number): void {
  table.confirmedAt = Math.max(table.confirmedAt, at);
  for (const upstream of table.upstreams.values()) confirmUpstream(upstream, at);
}

export function hasDoubts(table: RouteTable): boolean {
  return [...table.upstreams.values()].some(isDoubted);
}

/** Removes unused entries. To be called at an interval. */
export function pruneTable(table: RouteTable, now: number): void {
  for (const [id, until] of table.drained) if (until < now) table.drained.delete(id);
  for (const [id, application] of table.applications)
    if (application.open === 0 && application.sites.length === 0) table.applications.delete(id);
  for (const upstream of table.upstreams.values()) {
    closeIdle(upstream, now);
    if (upstream.references === 0 && upstream.open === 0) table.upstreams.delete(keyOf(upstream.instanceId, upstream));
  }
}

/** Stops new requests to this instance. */
export function markDrained(table: RouteTable, instanceId: string, now: number): Upstream[] {
  table.drained.set(instanceId, now + DRAINED_MS);
  const own = [...table.upstreams.values()].filter((upstream) => upstream.instanceId === instanceId);
  for (const upstream of own) {
    upstream.drained = true;
    closeIdle(upstream, Infinity);
  }
  return own;
}

function grouped(routes: Route[]): Map<string, Route[]> {
  const groups = new Map<string, Route[]>();
  for (const route of routes) {
    const group = groups.get(route.application_id);
    if (group === undefined) groups.set(route.application_id, [route]);
    else group.push(route);
  }
  return groups;
}

function openSite(table: RouteTable, application: ApplicationLoad, route: Route): Site {
  const upstreams = route.targets.map((target) => {
    const key = keyOf(target.instance_id, target);
    const upstream = table.upstreams.get(key) ?? openUpstream(target, table.confirmedAt);
    table.upstreams.set(key, upstream);
    upstream.references += 1;
    upstream.drained ||= table.drained.has(target.instance_id);
    return upstream;
  });
  return { route, upstreams, application, nextIndex: 0, service: null };
}

function release(table: RouteTable, upstream: Upstream): void {
  upstream.references -= 1;
  if (upstream.references > 0) return;
  closeIdle(upstream, Infinity);
  endTrust(upstream, performance.now());
  if (upstream.open === 0) table.upstreams.delete(keyOf(upstream.instanceId, upstream));
}

function addHosts(table: RouteTable, site: Site): void {
  for (const host of site.route.hosts) {
    if (host.startsWith('*.')) table.wildcards.set(host.slice(1).toLowerCase(), site);
    else table.hosts.set(normalizeHost(host), site);
  }
}

// The host may have moved to another application.
function removeHosts(table: RouteTable, site: Site): void {
  for (const host of site.route.hosts) {
    const [map, key] = host.startsWith('*.')
      ? ([table.wildcards, host.slice(1).toLowerCase()] as const)
      : ([table.hosts, normalizeHost(host)] as const);
    if (map.get(key) === site) map.delete(key);
  }
}

/** Another place is another upstream: its connections must not lead to whoever has the old address. */
function keyOf(
  instanceId: string,
  { port, location = HOST_NETWORK }: Pick<Target, 'port'> & { location?: Upstream['location'] },
): string {
  return `${instanceId}:${port}@${Object.values(location)[0]}`;
}
