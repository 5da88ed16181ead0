// State shared by all parts of an open ingress.
import type { IngressCallbacks } from './ingress';
import type { TlsContextCache } from './tls_contexts';
import type { ProxiedRequest } from './http/proxied_request';
import type { IngressLimits } from './limits';
import type { SimpleConnection } from './http/simple_connection';
import type { RouteTable } from './route_table';
import type { TrafficCounters } from './traffic';
import type { Tunnel } from './http/tunnel';

export interface IngressState {
  limits: IngressLimits;
  parts: IngressCallbacks;
  table: RouteTable;
  traffic: TrafficCounters;
  certificates: TlsContextCache;
  running: Set<ProxiedRequest>;
  /** Connections not (yet) handed to node:http. */
  visitors: Set<SimpleConnection>;
  tunnels: Set<Tunnel>;
  /** Number of trusted proxies in front. */
  trustProxy: number;
  httpsPort: number | null;
  closing: boolean;
}
