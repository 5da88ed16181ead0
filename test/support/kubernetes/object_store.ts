// Objects behind an odd API server, as far as the platform's driver of workloads meets them: lists by labels, reads,
// server-side apply and deletion with preconditions, as Kubernetes 1.34 answers.
import type { KubernetesObject } from '../../../drivers/kubernetes/client/resource_type';
import { respond, statusOf, type Handler, type OddApiServer, type SeenRequest } from './odd_api_server';

type Stored = KubernetesObject & { metadata: NonNullable<KubernetesObject['metadata']>; [field: string]: unknown };

export interface ObjectStore {
  /** By path. */
  objects: Map<string, Stored>;
  /** The one whose path ends so. @throws Error where there is none */
  find(end: string): Stored;
  /** Runs before each request; what it answers ends it. */
  before: Handler | null;
}

const COLLECTION = /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([a-z]+)$/;

/** From then on the server keeps objects. */
export function serveObjects(api: OddApiServer): ObjectStore {
  const objects = new Map<string, Stored>();
  let version = 0;
  const store: ObjectStore = {
    objects,
    before: null,
    find(end) {
      const [, found] = [...objects].find(([path]) => path.endsWith(end)) ?? [];
      if (!found) throw new Error(`There is no ${end} among ${[...objects.keys()].join(' ')}`);
      return found;
    },
  };
  api.answer((request, response, count) => {
    store.before?.(request, response, count);
    if (response.writableEnded) return;
    const [status, body] = answerTo(request, objects, () => String((version += 1)));
    respond(response, status, body);
  });
  return store;
}

function answerTo(
  { method, url: { pathname, searchParams }, body }: SeenRequest,
  objects: Map<string, Stored>,
  next: () => string,
): [number, object] {
  const [isCollection, namespace, plural] = COLLECTION.exec(pathname) ?? [];
  if (method === 'GET' && isCollection && !objects.has(pathname) && !/\/namespaces\/[^/]+$/.test(pathname))
    return [200, listOf(objects, namespace, plural ?? '', searchParams.get('labelSelector') ?? '')];
  const present = objects.get(pathname);
  const absent = statusOf(404, 'NotFound', 'not found', { name: pathname.split('/').at(-1) });
  if (method === 'GET') return present ? [200, present] : [404, absent];
  const given = JSON.parse(body) as Stored & { preconditions?: { uid?: string } };
  if (method === 'DELETE') {
    if (!present) return [404, absent];
    const { uid } = given.preconditions ?? {};
    if (uid !== undefined && uid !== present.metadata.uid)
      return [409, statusOf(409, 'Conflict', 'Precondition failed: UID in precondition')];
    objects.delete(pathname);
    return [200, {}];
  }
  const refusal = refusalOfApply(given, present, searchParams.get('force') === 'true');
  if (refusal) return refusal;
  const kept = { uid: `uid-${next()}`, ...present?.metadata };
  const stored = { ...present, ...given, metadata: { ...kept, ...given.metadata, resourceVersion: next() } };
  objects.set(pathname, stored);
  return [present ? 200 : 201, stored];
}

function refusalOfApply({ metadata }: Stored, present: Stored | undefined, force: boolean): [number, object] | null {
  const { uid } = metadata;
  if (uid !== undefined && !present)
    return [409, statusOf(409, 'Conflict', `uid mismatch: the provided object specified uid ${uid}, and no existing`)];
  if (uid !== undefined && uid !== present?.metadata.uid)
    return [422, statusOf(422, 'Invalid', `is invalid: metadata.uid: Invalid value: "${uid}": field is immutable`)];
  if (force || !present || present.metadata.labels?.['app.kubernetes.io/managed-by'] === 'platform-api') return null;
  const message = 'conflict with "kubectl-create" using v1';
  const causes = [{ reason: 'FieldManagerConflict', message, field: '.spec' }];
  return [409, statusOf(409, 'Conflict', 'Apply failed with 1 conflict', { causes })];
}

function listOf(objects: Map<string, Stored>, namespace: string | undefined, plural: string, selector: string): object {
  const wanted = selector.split(',').filter(Boolean);
  const items = [...objects].filter(([path, { metadata }]) => {
    const isOfKind = path.split('/').at(-2) === plural && (namespace === undefined || metadata.namespace === namespace);
    return isOfKind && wanted.every((term) => hasLabel(metadata.labels ?? {}, term.split('=')));
  });
  return { metadata: { resourceVersion: '1' }, items: items.map(([, object]) => object) };
}

function hasLabel(labels: Record<string, string>, [name = '', value]: string[]): boolean {
  return value === undefined ? name in labels : labels[name] === value;
}
