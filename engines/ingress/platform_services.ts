// The servers of the platform itself behind the ingress: the API with the dashboard, the S3 endpoint, the registry.
// They have host names of their own, which no route can take, and are reached over Unix sockets that nobody else may
// open, so they believe what the ingress says of a visitor (core/process/ingress_connections.ts). While one of them
// restarts, its requests wait.
import { connectionsMax } from '../../core/process/connection_gate';
import { isPublicAddress } from '../../core/protocols/addresses';
import { openByClient, openByPrivate } from './client_share';
import type { ProxiedRequest } from './http/proxied_request';
import type { IngressLimits } from './limits';
import type { RouteTable, Site } from './route_table';
import { openUpstream } from './upstream';

/** As the control plane gives it. */
export interface ServedService {
  name: 'api' | 's3' | 'registry';
  /** In lower case; `*.s3.example.com` matches all names one label below. */
  hosts: string[];
  /** Those of `hosts` that answer over plain HTTP while they have no certificate. */
  plainHosts: string[];
  /** Of its https URLs. */
  port: number;
  /** Address of the API, where errors are explained. */
  baseUrl: string;
  /** Path of the Unix socket. */
  socket: string;
}

export interface Service {
  readonly served: ServedService;
  /** Its connections fail since this time; null: it takes them. */
  awaySince: number | null;
  /** Requests of which nothing was sent, until it takes connections again. */
  readonly waiting: Set<ProxiedRequest>;
  timer: NodeJS.Timeout | undefined;
  /** Since then: requests that had to wait, and those that got 503. */
  waited: number;
  refused: number;
}

/** Silence of a server that works on a request: it limits the time of its requests itself. */
const WORK_MS = 3_600_000;

/** To be called once, for a new table. */
export function addServices(table: RouteTable, served: readonly ServedService[]): void {
  for (const one of served) {
    const site = siteOf(one);
    for (const upstream of site.upstreams) table.upstreams.set(`service ${one.name}`, upstream);
    for (const host of one.hosts) table.services.set(host.replace(/^\*/, ''), site);
  }
}

/** Names with a certificate each. */
export function serviceHosts(table: RouteTable): string[] {
  return [...table.services.keys()].filter((host) => !host.startsWith('.'));
}

/** Whether the name is served over plain HTTP while it has no certificate. */
export function isPlainHost({ served: { plainHosts } }: Service, host: string): boolean {
  return plainHosts.includes(host) || plainHosts.includes(host.replace(/^[^.]+/, '*'));
}

/** Of all requests; the rest is for public addresses. */
const PRIVATE_SHARE = 0.75;
/** One address gets no more than this part of the places that are left, and these at least. */
const ADDRESSES = 8;
const ADDRESS_LEAST = 16;

/**
 * Why one more request of the client cannot be taken; null where it can. A private address may be that of a proxy, or
 * one of many that programs of a tenant have here.
 */
export function overload(
  { application }: Site,
  address: string,
  { serviceRequests, serviceAddressRequests }: IngressLimits,
): 'service_busy' | 'service_address_busy' | null {
  const total = Math.min(serviceRequests, Math.floor(connectionsMax() / 2));
  const isPublic = isPublicAddress(address);
  const ofAddress = isPublic ? shareOfAddress(total, application.open, serviceAddressRequests) : total / 2;
  if (application.open >= total) return 'service_busy';
  const ofPrivate = total * PRIVATE_SHARE;
  if (!isPublic && application.open >= ofPrivate && openByPrivate(application) >= ofPrivate) return 'service_busy';
  return openByClient(application, address) >= ofAddress ? 'service_address_busy' : null;
}

/** The fewer places are left, the fewer one address gets: a handful of them must not hold all. */
function shareOfAddress(total: number, open: number, most: number): number {
  return Math.min(most, total / 2, Math.max(ADDRESS_LEAST, (total - open) / ADDRESSES));
}

function siteOf(served: ServedService): Site {
  const { name, hosts, socket } = served;
  const upstream = openUpstream({ instance_id: name, port: 0 });
  Object.assign(upstream, { location: { server: socket }, references: 1 });
  return {
    route: {
      application_id: name,
      preview_id: null,
      hosts,
      targets: [],
      state: 'running',
      maintenance: false,
      force_https: true,
      request_timeout_ms: WORK_MS,
      sticky: false,
    },
    upstreams: [upstream],
    application: { open: 0, openByAddress: new Map(), sites: [], readNumber: 0 },
    nextIndex: 0,
    service: { served, awaySince: null, waiting: new Set(), timer: undefined, waited: 0, refused: 0 },
  };
}
