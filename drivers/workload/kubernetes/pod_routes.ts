// An ingress that follows the pods of a cluster itself: what the cluster heals and moves gets requests also while the
// control plane is away, and addresses of pods that have gone get none. The control plane says which workloads serve
// a route, the cluster which pods they have (docs/decisions/0213).
import { isDeepStrictEqual } from 'node:util';
import type { Pod } from 'kubernetes-types/core/v1';
import { derivedId } from '../../../core/ids';
import { CONFIRMED_MS } from '../../../engines/ingress/confirmation';
import type { IngressDriver, Route, Target } from '../../../engines/ingress/ingress';
import { repeatWork } from '../../../core/process/background';
import type { KubernetesClient } from '../../kubernetes/client/client';
import type { Followed } from '../../kubernetes/client/follow';
import { resourceTypes } from '../../kubernetes/client/resource_type';
import { LABEL } from './names';
import { isInItsProject } from './own_object';
import { instanceOfPod } from './pod_state';

/**
 * Of 3 or 4 seconds, with a bookmark two seconds before the end: while all is well, the last proof is not so old that
 * the ingress has to connect (UNCONFIRMED_MS in engines/ingress/confirmation.ts).
 */
export const WATCH_SECONDS = 3;
const CONFIRM_EVERY_MS = 250;
/** Once a watch is open, events that were missed before are on their way for so long. */
const SETTLED_MS = 1_000;
/** A watch that begins sooner after the one before goes on with it. */
const BETWEEN_MS = 500;
/** After their last proof the pods count as current for so long. */
const GAP_MS = 6_000;
/** How long pods are remembered as removed: a worker removes their rows sooner. */
const REMOVED_MS = 600_000;

export interface PodRoutes {
  ingress: IngressDriver;
  /** Resolves when the pods are known, or the cluster cannot be asked. */
  known: Promise<void>;
}

interface Given {
  routes: Route[];
  /** Infinity: pinned. */
  read: number;
  /** What the ingress has. */
  merged: Route[];
}

interface KnownPod {
  application_id: string;
  /** As in `Route.workloads`. */
  workload: string;
  /** null: it has no address, or its program has ended or is ending. */
  target: Target | null;
  isReady: boolean;
}

/** Where the addresses come from at the moment. `nowhere`: those that were known last. */
type Source = 'pods' | 'rows' | 'nowhere';

interface State {
  ingress: IngressDriver;
  given: Map<string, Given>;
  /** By uid. */
  pods: Map<string, KnownPod>;
  /** Those that take requests, by workload and uid. */
  ready: Map<string, Map<string, Target>>;
  /** When pods were removed, by uid. */
  removed: Map<string, number>;
  source: Source;
  /** Since when the watch is open; null: it is not. */
  openSince: number | null;
  /** When the pods were those of the cluster last, as `Followed.provenAt` says. */
  currentAt: number;
  rowsConfirmedAt: number;
  /** Applications with instances that have a row, and whose pods the watch has not reported yet. */
  unseen: Set<string>;
}

/** An ingress in front of `ingress` with the addresses of the pods. Closing it ends the watch. */
export function followPodRoutes(
  ingress: IngressDriver,
  client: Pick<KubernetesClient, 'follow'>,
  log: (message: string, error: Error) => void,
): PodRoutes {
  const state: State = {
    ...{ ingress, given: new Map(), pods: new Map(), ready: new Map(), removed: new Map(), source: 'nowhere' },
    ...{ openSince: null, currentAt: -Infinity, rowsConfirmedAt: -Infinity, unseen: new Set() },
  };
  const closing = new AbortController();
  let isAway = false;
  let resolveKnown = (): void => undefined;
  const known = new Promise<void>((resolve) => (resolveKnown = resolve));
  const handler = {
    changed: (pod: Pod) => changePod(state, pod),
    removed: (pod: Pod) => removePod(state, pod),
    synchronized() {
      // The first list is complete; later ones may go on where the watch before has ended.
      state.openSince ??= state.currentAt === -Infinity ? -Infinity : performance.now();
      isAway = false;
      tick(state, followed);
      resolveKnown();
    },
    failed(error: Error) {
      if (!isAway) log('the ingress could not watch the pods of the cluster; it tries again', error);
      isAway = true;
      resolveKnown();
    },
  };
  // Of all installations: the routes say which is theirs.
  const scope = { labelSelector: LABEL.workload };
  const options = { watchSeconds: WATCH_SECONDS };
  const followed: Followed<Pod> = client.follow(resourceTypes.pods, scope, handler, closing.signal, options);
  const ticking = repeatWork({ name: 'pod_routes', everyMs: CONFIRM_EVERY_MS }, () => tick(state, followed));
  const stop = (): void => {
    void ticking.stop();
    closing.abort();
  };
  return { ingress: ingressOf(state, stop), known };
}

function ingressOf(state: State, stop: () => void): IngressDriver {
  const { ingress } = state;
  return {
    ...ingress,
    ports: ingress.ports,
    // As they were given: another process has pods of its own.
    routes: () => ({ ...ingress.routes(), routes: [...state.given.values()].flatMap(({ routes }) => routes) }),
    restoreRoutes(routes) {
      if (ingress.routes().isComplete) return;
      for (const [id, own] of byApplication(routes)) if (!state.given.has(id)) keep(state, id, own, 0);
      ingress.restoreRoutes(mergedOf(state));
    },
    replaceRoutes(routes, read = ingress.beginRead()) {
      const grouped = byApplication(routes);
      for (const [id, { read: last }] of state.given) if (!grouped.has(id) && read >= last) state.given.delete(id);
      for (const [id, own] of grouped) keep(state, id, own, read);
      ingress.replaceRoutes(mergedOf(state), read);
    },
    replaceApplicationRoutes(id, routes, read = ingress.beginRead()) {
      if (keep(state, id, routes, read)) ingress.replaceApplicationRoutes(id, state.given.get(id)?.merged ?? [], read);
    },
    pinRoutes(id, routes) {
      keep(state, id, routes, Infinity);
      const unpin = ingress.pinRoutes(id, state.given.get(id)?.merged ?? []);
      return (read = ingress.beginRead()) => {
        unpin(read);
        const given = state.given.get(id);
        if (given) given.read = read;
      };
    },
    /** Confirms the rows that the worker writes. */
    confirmRoutes(ageMs) {
      state.rowsConfirmedAt = Math.max(state.rowsConfirmedAt, performance.now() - ageMs);
      // Before the confirmation, the ingress gets the addresses that it is for.
      chooseSource(state);
      if (state.source === 'rows') ingress.confirmRoutes(ageMs);
    },
    async close(graceMs) {
      await ingress.close(graceMs);
      stop();
    },
  };
}

/** @returns whether they are newer than what was given before */
function keep(state: State, id: string, routes: Route[], read: number): boolean {
  if (read < (state.given.get(id)?.read ?? 0)) return false;
  if (routes.length === 0) state.given.delete(id);
  else state.given.set(id, { routes, read, merged: routes.map((route) => merge(state, route)) });
  return true;
}

const mergedOf = ({ given }: State): Route[] => [...given.values()].flatMap(({ merged }) => merged);

function byApplication(routes: readonly Route[]): Map<string, Route[]> {
  const grouped = new Map<string, Route[]>();
  for (const route of routes) grouped.set(route.application_id, [...(grouped.get(route.application_id) ?? []), route]);
  return grouped;
}

/** To be called at an interval, and when a watch opens: confirms the addresses for the moment of the last proof. */
function tick(state: State, followed: Followed<Pod>): void {
  const now = performance.now();
  const { outdatedSince, provenAt } = followed;
  if (outdatedSince === null) state.openSince ??= now;
  else if (Date.now() - outdatedSince >= BETWEEN_MS) state.openSince = null;
  if (isSettled(state)) state.currentAt = provenAt;
  for (const [uid, at] of state.removed) if (now - at > REMOVED_MS) state.removed.delete(uid);
  chooseSource(state);
  if (!isSettled(state)) return;
  for (const id of state.unseen) apply(state, id);
  state.ingress.confirmRoutes(now - provenAt);
  // What is newer than the proof waits for the next one: a program that starts anew is not to miss requests for long.
  if (state.ingress.hasDoubts?.()) followed.renew();
}

function chooseSource(state: State): void {
  const now = performance.now();
  const other = now - state.rowsConfirmedAt < CONFIRMED_MS ? 'rows' : 'nowhere';
  const source = now - state.currentAt < GAP_MS ? 'pods' : other;
  if (source === state.source) return;
  state.source = source;
  for (const id of state.given.keys()) apply(state, id);
}

function isSettled({ openSince }: State): boolean {
  return openSince !== null && performance.now() - openSince >= SETTLED_MS;
}

/** Passes the routes of an application on, if the pods have changed them. */
function apply(state: State, id: string): void {
  const given = state.given.get(id);
  state.unseen.delete(id);
  if (!given) return;
  const merged = given.routes.map((route) => merge(state, route));
  if (isDeepStrictEqual(merged, given.merged)) return;
  given.merged = merged;
  // With its number: a read that is under way is newer.
  state.ingress.replaceApplicationRoutes(id, merged, given.read);
}

function merge(state: State, route: Route): Route {
  const { workloads = [], targets } = route;
  const others = targets.filter(({ pod_uid }) => pod_uid === undefined);
  const rows = targets.filter(({ pod_uid }) => pod_uid !== undefined && !state.removed.has(pod_uid));
  const usesRows = state.source === 'rows' || (state.source === 'nowhere' && state.pods.size === 0);
  if (usesRows) return { ...route, targets: [...others, ...rows] };
  const ids = new Map(rows.map(({ pod_uid, instance_id }) => [pod_uid, instance_id]));
  const known = rows.flatMap(({ pod_uid = '' }) => state.pods.get(pod_uid) ?? []);
  const ready =
    workloads.length > 0
      ? workloads.flatMap((workload) => [...(state.ready.get(workload)?.values() ?? [])])
      : known.flatMap(({ target, isReady }) => (isReady && target !== null ? target : []));
  // The worker may have learned sooner that they are ready: it switches requests then.
  const soon = ready.length > 0 ? [] : known.flatMap(({ target }) => target ?? []);
  const pods = [...ready, ...soon].map((target) => ({
    ...target,
    instance_id: ids.get(target.pod_uid) ?? target.instance_id,
  }));
  const unseen = areRowsAhead(state) ? rows.filter(({ pod_uid = '' }) => !state.pods.has(pod_uid)) : [];
  if (unseen.length > 0) state.unseen.add(route.application_id);
  return { ...route, targets: [...others, ...pods, ...unseen] };
}

/** After a gap the worker may know of new pods sooner. */
function areRowsAhead(state: State): boolean {
  return !isSettled(state) && performance.now() - state.rowsConfirmedAt < CONFIRMED_MS;
}

function changePod(state: State, pod: Pod): void {
  const uid = pod.metadata?.uid ?? '';
  const prefix = pod.metadata?.labels?.[LABEL.installation] ?? '';
  const instance = instanceOfPod(pod);
  if (instance === null || !isInItsProject({ prefix }, pod)) return;
  const { location, port, status, workload_id, project_id } = instance;
  const application_id = pod.metadata?.labels?.[LABEL.application] ?? '';
  const isReady = status === 'running';
  const target =
    (isReady || status === 'starting') && location !== null && port !== null
      ? { instance_id: derivedId('ins', instance.created_at, uid), port, location, pod_uid: uid }
      : null;
  const workload = `${prefix}/${project_id}/${workload_id}`;
  state.pods.set(uid, { application_id, workload, target, isReady });
  const ready = state.ready.get(workload) ?? new Map<string, Target>();
  if (target === null || !isReady) ready.delete(uid);
  else state.ready.set(workload, ready.set(uid, target));
  apply(state, application_id);
}

function removePod(state: State, { metadata }: Pod): void {
  const uid = metadata?.uid ?? '';
  const pod = state.pods.get(uid);
  state.pods.delete(uid);
  state.removed.set(uid, performance.now());
  if (!pod) return;
  const ready = state.ready.get(pod.workload);
  ready?.delete(uid);
  if (ready?.size === 0) state.ready.delete(pod.workload);
  apply(state, pod.application_id);
}
