// What the cluster allows and lacks, for `doctor` and the start of the service.
import { DriverError, type DriverContext, type Fingerprint } from '../../../core/driver';
import { measuresPods, METRICS_API } from './pod_usage';
import type { AccessQuestion, KubernetesClient } from '../../kubernetes/client/client';

const METRICS_GROUP = METRICS_API.slice(0, METRICS_API.indexOf('/'));
/** Rights that the platform needs, as for `kubectl auth can-i`. */
export const NEEDED_RIGHTS = [
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { resource: 'namespaces' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], {
    group: 'networking.k8s.io',
    resource: 'networkpolicies',
  }),
  ...rightsTo(['get', 'list', 'create', 'patch'], { resource: 'resourcequotas' }),
  ...rightsTo(['get', 'list', 'create', 'patch'], { resource: 'limitranges' }),
  // What somebody else has in a namespace that is about to be removed.
  ...rightsTo(['list'], { resource: 'configmaps' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { resource: 'secrets' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { group: 'apps', resource: 'deployments' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { group: 'apps', resource: 'statefulsets' }),
  // Databases with automatic failover, where there is CloudNativePG.
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { group: 'postgresql.cnpg.io', resource: 'clusters' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { resource: 'services' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { resource: 'persistentvolumeclaims' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { group: 'policy', resource: 'poddisruptionbudgets' }),
  ...rightsTo(['get', 'list'], { group: 'storage.k8s.io', resource: 'storageclasses' }),
  ...rightsTo(['list'], { resource: 'events' }),
  ...rightsTo(['get', 'list', 'create', 'patch', 'delete'], { group: 'batch', resource: 'jobs' }),
  // The deadline of a run's pod is moved to cancel it; one that waits for a registry that is back is made anew.
  ...rightsTo(['list', 'watch', 'patch', 'delete'], { resource: 'pods' }),
  ...rightsTo(['list'], { group: METRICS_GROUP, resource: 'pods' }),
  ...rightsTo(['get'], { resource: 'pods', subresource: 'log' }),
  // Whether a WebSocket is `get` or `create` depends on the version.
  ...rightsTo(['get', 'create'], { resource: 'pods', subresource: 'attach' }),
  ...rightsTo(['get', 'create'], { resource: 'pods', subresource: 'exec' }),
];

/** Node warns of a signal that more than ten requests listen to. */
const ASKED_AT_ONCE = 8;
/** Sleep before an instance is stopped, which the ingress needs, is there since this minor version. */
const MINOR_MIN = 30;

/** Never throws. */
export async function fingerprintOf(
  client: KubernetesClient,
  prefix: string,
  ctx: DriverContext,
): Promise<Fingerprint> {
  try {
    const { major, minor, gitVersion } = await client.version(ctx);
    const measures = await measuresPods(client, prefix, ctx);
    const facts = { version: gitVersion, prefix, measures };
    const oldest = `1.${MINOR_MIN}`;
    if (Number(major) === 1 && Number.parseInt(minor, 10) < MINOR_MIN)
      return { healthy: false, reason: `Kubernetes ${gitVersion} is older than ${oldest}.`, facts };
    const missing = await missingRights(client, ctx);
    const reason = missing.length ? `The credentials lack the right to ${missing.join(', ')}.` : null;
    return { healthy: reason === null, reason, facts };
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    return { healthy: false, reason: error.message, facts: {} };
  }
}

/** Some side by side: one after the other takes many seconds with a cluster that is far away. */
async function missingRights(client: KubernetesClient, ctx: DriverContext): Promise<string[]> {
  const missing: string[] = [];
  for (let from = 0; from < NEEDED_RIGHTS.length; from += ASKED_AT_ONCE) {
    const rights = NEEDED_RIGHTS.slice(from, from + ASKED_AT_ONCE);
    const reviews = await Promise.all(rights.map((right) => client.reviewAccess({ group: '', ...right }, ctx)));
    missing.push(...rights.filter((_, index) => reviews[index]?.allowed !== true).map(nameOf));
  }
  return missing;
}

type Right = Omit<AccessQuestion, 'group'> & { group?: string };

function rightsTo(verbs: readonly string[], object: Omit<Right, 'verb'>): Right[] {
  return verbs.map((verb) => ({ verb, ...object }));
}

function nameOf({ verb, group, resource, subresource }: Right): string {
  const of = group === METRICS_GROUP ? 'metrics of ' : '';
  return `${verb} ${of}${resource}${subresource ? `/${subresource}` : ''}`;
}
