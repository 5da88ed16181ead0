// What the ingress process serves: the ingress and the cache of CDN zones, and what both count and note.
import { setTimeout as sleep } from 'node:timers/promises';
import { isPublicAddress } from '../../../core/protocols/addresses';
import { type CdnEngine, openEmbeddedCdn, type CdnZoneSpec } from '../../cdn';
import type {
  AccessLine,
  Certificate,
  IngressCallbacks,
  IngressDriver,
  Route,
  ServiceAbsence,
  Unpin,
} from '../ingress';
import { openOutbound } from '../../../core/outbound';
import { openIngressServer } from '../http/http';
import type { Listeners, Predecessor } from '../listeners';
import type { Channel } from '../../../core/process/channel';
import type { IngressProcessSettings, Report } from './settings';

export interface Served {
  settings: IngressProcessSettings;
  ingress: IngressDriver;
  listeners: Listeners;
  cdn: CdnEngine;
  zones: Map<string, CdnZoneSpec>;
  /** Since the last report. */
  lines: AccessLine[];
  pins: Map<number, Unpin>;
}

/** Puts something between the control plane and the ingress that knows where instances are. */
export type Follow = (parts: {
  ingress: IngressDriver;
  settings: IngressProcessSettings;
  log(message: string, error: unknown): void;
}) => IngressDriver | Promise<IngressDriver>;

/** What a control plane knows: certificates and answers to challenges. */
type Callbacks = Pick<IngressCallbacks, 'certificate' | 'challenge'> & {
  log(message: string, error?: unknown): void;
};

/** While no control plane takes them; later ones are left out. */
const LINES_MAX = 20_000;
const ANSWER_MS = 5_000;
/** While a successor reads the list of stored objects, its predecessor serves; of a million this takes longer. */
const OBJECTS_MS = 3_000;

/** What a successor serves from its first request on. */
export interface Content {
  routes: Route[];
  /** Whether a host name without a route has none. */
  isComplete: boolean;
  confirmedMsAgo: number | null;
  zones: [string, CdnZoneSpec][];
}

/** @throws Error of `listen`, e.g. EADDRINUSE */
export async function openServed(
  settings: IngressProcessSettings,
  { log, ...callbacks }: Callbacks,
  predecessor: (Predecessor & { content: Content }) | null,
  follow: Follow,
): Promise<Served> {
  const { host, port, tlsPort, trustProxy, services, cdn: cache } = settings;
  const outbound = openOutbound({
    isAllowed: cache.allowPrivateAddresses ? () => true : isPublicAddress,
    hostsFile: cache.allowPrivateAddresses,
    resolvers: cache.resolvers,
    caFile: cache.caFile,
  });
  const { directory, bytesMax, objectsMax, memoryBytesMax, objectBytesMax, token } = cache;
  const limits = { bytesMax, objectsMax, memoryBytesMax, objectBytesMax };
  const cdn = openEmbeddedCdn({ directory, ...limits, outbound, log, ...(token && { token }) });
  const lines: AccessLine[] = [];
  const line = (one: AccessLine): void => void (lines.length < LINES_MAX && lines.push(one));
  const serviceIsBack = (absence: ServiceAbsence): void => log(textOf(absence));
  const parts = { ...callbacks, edge: cdn.edge, line, serviceIsBack };
  const content = predecessor?.content ?? null;
  const zones = new Map(content?.zones);
  for (const [id, spec] of zones) await cdn.driver.ensureZone(id, spec);
  if (predecessor) await Promise.race([cdn.objectsLoaded(), sleep(OBJECTS_MS)]);
  const options = {
    host,
    port,
    tlsPort,
    trustProxy,
    ...(services && { services }),
    parts,
    predecessor,
    routes: content,
  };
  const { driver, listeners } = await openIngressServer(options);
  const ingress = await follow({ ingress: driver, settings, log });
  return { settings, ingress, listeners, cdn, zones, lines, pins: new Map() };
}

export function contentOf({ ingress, zones }: Served): Content {
  return { ...ingress.routes(), zones: [...zones] };
}

/** Asks the control plane; fails where none is there. */
export function callbacksOf(controller: () => Channel | null): Callbacks {
  const ask = async (name: string, ...values: string[]): Promise<unknown> => {
    const channel = controller();
    if (!channel) throw new Error('There is no control plane.');
    return withinTime(channel.call(name, ...values));
  };
  return {
    certificate: async (host) => (await ask('certificate', host)) as Certificate | null,
    challenge: async (token, host) => (await ask('challenge', token, host)) as string | null,
    log(message, error) {
      const text = error === undefined ? null : String(error);
      process.stderr.write(`${new Date().toISOString()} ${message} ${text ?? ''}\n`);
      controller()?.send('log', message, text);
    },
  };
}

function textOf({ name, awayMs, waited, refused }: ServiceAbsence): string {
  const seconds = (awayMs / 1000).toFixed(1);
  return `The server \`${name}\` took no connections for ${seconds} s: ${waited} requests waited, ${refused} got 503.`;
}

/** Null where nothing has happened. */
export function reportOf({ lines, ingress, cdn }: Served): Report | null {
  const report = { lines: lines.splice(0), traffic: ingress.takeTraffic(), cdn: cdn.driver.takeTraffic() };
  return report.lines.length + report.traffic.length + report.cdn.length > 0 ? report : null;
}

export async function closeServed({ ingress, cdn }: Served, graceMs: number, tunnelGraceMs?: number): Promise<void> {
  await ingress.close(graceMs, tunnelGraceMs);
  await cdn.close();
}

function withinTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The control plane did not answer in time.')), ANSWER_MS);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
