// What the ingress process is given when it opens, and what it answers.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { memoize } from '../../../core/memoize';
import type { CdnTraffic, EmbeddedCdnLimits } from '../../cdn';
import type { AccessLine, IngressDriver, Traffic } from '../ingress';
import type { ServedService } from '../platform_services';

export interface IngressProcessSettings {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** null: no TLS. */
  tlsPort: number | null;
  /** How many proxies in front have their X-Forwarded-* believed. */
  trustProxy: number;
  /** The servers of the platform itself. */
  services?: ServedService[];
  /** The cluster whose pods it follows; absent: there is none. */
  cluster?: { kubeconfig: string | null; serviceHost: string | null; servicePort: number };
  cdn: EmbeddedCdnLimits & {
    allowPrivateAddresses: boolean;
    resolvers: readonly string[];
    caFile: string | null;
    /** See EdgeOptions. */
    token?: string;
  };
}

/** What the process answers first. */
export interface Greeting {
  /** Another control plane has it. */
  isBusy: boolean;
  pid: number;
  version: string;
  /** Null before `open`. `reads`: the number of the last read of routes. */
  opened: { settings: IngressProcessSettings; ports: IngressDriver['ports']; reads: number } | null;
}

/** What has been counted and noted since the last report. */
export interface Report {
  lines: AccessLine[];
  traffic: Traffic[];
  cdn: CdnTraffic[];
}

/** Of what follows pods. */
const CLUSTER_FOLDERS = ['drivers/kubernetes/client', 'drivers/workload/kubernetes'];

/**
 * Digest of the program: a process with another one is replaced. One at another place too: the packages beside it may
 * be others, and an upgrade removes older releases.
 */
export const programVersion = memoize((): string => {
  const root = path.resolve(__dirname, '../../..');
  const hash = createHash('sha256').update(process.version).update(root);
  for (const folder of ['engines/ingress', 'engines/cdn', 'core/outbound', 'core/process', ...CLUSTER_FOLDERS])
    for (const file of readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).sort())
      if (/\.[jt]s$/.test(file)) hash.update(file).update(readFileSync(path.join(root, folder, file)));
  return hash.digest('hex').slice(0, 16);
});
