// Adds network locations to routes of instances in isolated networks: the database knows only their ports.
import type { IngressDriver, Route, Target } from '../../engines/ingress/ingress';
import type { NetworkLocation } from '../../core/outbound/network_location';
import { runDirectoryOf, locationOf } from '../../drivers/runtime/run_directory';

const KNOWN_MAX = 20_000;

/** @param units run directories of the runtime */
export function withLocations(ingress: IngressDriver, units: string): IngressDriver {
  // A unit stays where it was started; of the same instance another one may be elsewhere, at another port.
  const known = new Map<string, NetworkLocation>();
  const located = (target: Target): Target => {
    // Of a cluster: the row has it.
    if (target.location) return target;
    const key = `${target.instance_id} ${target.port}`;
    const location = known.get(key) ?? locationOf(runDirectoryOf(units, target.instance_id));
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(key, location);
    return { ...target, location };
  };
  return withTargets(ingress, (targets) => targets.map(located));
}

/**
 * For an ingress elsewhere than the worker: instances on the machine of the worker are not reached from there, and its
 * own port of the same number may be another program's.
 */
export function withPodsOnly(ingress: IngressDriver): IngressDriver {
  return withTargets(ingress, (targets) => targets.filter(({ location }) => location !== undefined));
}

function withTargets(ingress: IngressDriver, change: (targets: Target[]) => Target[]): IngressDriver {
  const changed = (routes: Route[]): Route[] => routes.map((route) => ({ ...route, targets: change(route.targets) }));
  return {
    ...ingress,
    ports: ingress.ports,
    restoreRoutes: (routes) => ingress.restoreRoutes(changed(routes)),
    replaceRoutes: (routes, read) => ingress.replaceRoutes(changed(routes), read),
    replaceApplicationRoutes: (id, routes, read) => ingress.replaceApplicationRoutes(id, changed(routes), read),
    pinRoutes: (id, routes) => ingress.pinRoutes(id, changed(routes)),
  };
}
