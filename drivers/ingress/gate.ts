// What all parts of one ingress share while it is open.
import type { IngressParts } from '../ingress';
import type { CertificateStore } from './certificates';
import type { Exchange } from './exchange';
import type { IngressLimits } from './limits';
import type { RouteTable } from './table';
import type { TrafficBook } from './traffic';
import type { Tunnel } from './tunnel';

export interface Gate {
  limits: IngressLimits;
  parts: IngressParts;
  table: RouteTable;
  book: TrafficBook;
  certificates: CertificateStore;
  running: Set<Exchange>;
  tunnels: Set<Tunnel>;
  /** How many proxies in front of us are believed; 0: none. */
  trustProxy: number;
  httpsPort: number | null;
  closing: boolean;
}
