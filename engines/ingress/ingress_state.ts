// What all parts of one ingress share while it is open.
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
  /** Connections that node:http has not got. */
  visitors: Set<SimpleConnection>;
  tunnels: Set<Tunnel>;
  /** How many proxies in front of us are believed; 0: none. */
  trustProxy: number;
  httpsPort: number | null;
  closing: boolean;
}
