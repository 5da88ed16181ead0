// The drivers of the ingress and of its cache, where both are in the ingress process. Routes and zones are kept here
// too: a process that was started again gets them anew.
import type { AccessLine, IngressCallbacks, IngressDriver, Route, Traffic } from '../ingress';
import { type CdnDriver, type CdnTraffic, type CdnZoneSpec, type StoredZones } from '../../cdn';
import type { Channel } from '../../../core/process/channel';
import { openIngressProcess, type IngressProcess, type IngressProcessOptions } from './client';
import type { Report } from './settings';

export interface RemoteIngress {
  /** Its `close` leaves a process that serves something to the next control plane. */
  ingress: IngressDriver;
  cdn: CdnDriver;
  /** Ends the process, whatever it serves. */
  end(graceMs: number): Promise<void>;
}

export interface RemoteIngressOptions extends Pick<
  IngressProcessOptions,
  'directory' | 'settings' | 'log' | 'program'
> {
  callbacks: Omit<IngressCallbacks, 'edge'>;
  /** The zones of the last run, to serve before the loop comes to them. */
  stored?: StoredZones;
}

interface Known {
  reads: number;
  pins: number;
  /** By application. */
  routes: Map<string, Route[]>;
  isComplete: boolean;
  zones: Map<string, CdnZoneSpec>;
  traffic: Traffic[];
  cdn: CdnTraffic[];
}

/** Beyond the time that a drain may take. */
const ANSWER_MS = 5_000;

/** @throws Error with `code` EBUSY, EADDRINUSE or another one of `listen` */
export async function openRemoteIngress({
  callbacks,
  stored,
  ...options
}: RemoteIngressOptions): Promise<RemoteIngress> {
  const zones = new Map(stored?.load().map(({ id, spec }) => [id, spec]));
  const known: Known = {
    ...{ reads: 0, pins: 0, routes: new Map(), isComplete: false, zones, traffic: [], cdn: [] },
  };
  const process = await openIngressProcess({
    ...options,
    callbacks,
    onReport: (report) => take(known, report, callbacks.line),
    onReconnected: (channel) => sendAll(known, channel),
  });
  known.reads = process.reads;
  for (const [id, spec] of zones) process.channel().send('ensureZone', id, spec);
  return {
    ingress: ingressDriver(process, known, options.settings.services ?? [], stored),
    cdn: cdnDriver(process, known, stored),
    end: (graceMs) => process.end(graceMs),
  };
}

function take(known: Known, { lines, traffic, cdn }: Report, line: (line: AccessLine) => void): void {
  for (const one of lines) line({ ...one, at: new Date(one.at) });
  known.traffic.push(...traffic);
  known.cdn.push(...cdn);
}

function sendAll(known: Known, channel: Channel): void {
  const routes = [...known.routes.values()].flat();
  known.reads += 1;
  if (known.isComplete) channel.send('replaceRoutes', routes, known.reads);
  else channel.send('restoreRoutes', routes);
  for (const [id, spec] of known.zones) channel.send('ensureZone', id, spec);
}

function ingressDriver(
  process: IngressProcess,
  known: Known,
  services: readonly unknown[],
  stored?: StoredZones,
): IngressDriver {
  const send = (name: string, ...args: unknown[]): void => process.channel().send(name, ...args);
  const keep = (routes: Route[]): void => {
    known.routes.clear();
    for (const route of routes)
      known.routes.set(route.application_id, [...(known.routes.get(route.application_id) ?? []), route]);
  };
  return {
    ports: process.ports,
    routes: () => ({ routes: [...known.routes.values()].flat(), isComplete: known.isComplete, confirmedMsAgo: null }),
    beginRead: () => (known.reads += 1),
    replaceRoutes(routes, read = (known.reads += 1)) {
      keep(routes);
      known.isComplete = true;
      send('replaceRoutes', routes, read);
    },
    restoreRoutes(routes) {
      keep(routes);
      send('restoreRoutes', routes);
    },
    replaceApplicationRoutes(id, routes, read = (known.reads += 1)) {
      known.routes.set(id, routes);
      send('replaceApplicationRoutes', id, routes, read);
    },
    pinRoutes(id, routes) {
      const pin = (known.pins += 1);
      send('pinRoutes', pin, id, routes);
      return (read = (known.reads += 1)) => send('unpinRoutes', pin, read);
    },
    confirmRoutes: (ageMs) => send('confirmRoutes', ageMs),
    drain: (instanceId, ms) => answered(callAll(process, 'drain', instanceId, ms), ms + ANSWER_MS),
    takeTraffic: () => known.traffic.splice(0),
    holdTraffic: () => answered(callAll(process, 'hold'), ANSWER_MS),
    forgetCertificate: (host) => send('forgetCertificate', host),
    close: async (graceMs) => {
      await stored?.flush();
      if (!isServing(known, services)) return process.end(graceMs);
      process.detach();
    },
  };
}

/** Without anything behind it, a process that stays would only keep the port. */
function isServing({ routes, zones }: Known, services: readonly unknown[]): boolean {
  return services.length > 0 || zones.size > 0 || [...routes.values()].flat().some(({ targets }) => targets.length > 0);
}

/** Of processes that were replaced too: what they have begun depends on it. One that ends meanwhile has done it. */
async function callAll({ channel, draining }: IngressProcess, name: string, ...args: unknown[]): Promise<void> {
  const replaced = [...draining].map((one) => Promise.race([one.closed, one.call(name, ...args)]));
  await Promise.all([channel().call(name, ...args), ...replaced]);
}

function cdnDriver(process: IngressProcess, known: Known, stored?: StoredZones): CdnDriver {
  const save = (): void => stored?.save(() => [...known.zones].map(([id, spec]) => ({ id, spec })));
  const call = (name: string, ...args: unknown[]): Promise<void> => callAll(process, name, ...args);
  return {
    name: 'embedded',
    async ensureZone(id, spec) {
      known.zones.set(id, spec);
      save();
      await call('ensureZone', id, spec);
    },
    async removeZone(id) {
      known.zones.delete(id);
      save();
      // A zone that is gone must not come back with the next start.
      await stored?.flush();
      await call('removeZone', id);
    },
    purge: (id, spec) => call('purge', id, spec),
    takeTraffic: () => known.cdn.splice(0),
  };
}

/** A process that has ended has no open requests. */
function answered(call: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    call.then(
      () => (clearTimeout(timer), resolve()),
      () => (clearTimeout(timer), resolve()),
    );
  });
}
