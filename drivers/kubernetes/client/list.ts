// All objects of a collection, read in pages.
import type { DriverContext } from '../../../core/driver';
import type { Connection } from './connection';
import { hasCode, KubernetesError } from './failure';
import {
  collectionPath,
  collectionSubject,
  type KubernetesObject,
  type ListScope,
  type ResourceType,
} from './resource_type';

export interface Listed<T> {
  items: T[];
  /** Where a watch goes on; '' for what cannot be watched. */
  resourceVersion: string;
}

export interface ListOptions<T> {
  /** Objects of a page. */
  pageSize?: number;
  /** What is kept of each object, so that a page is let go before the next one is read. */
  keep?(object: T): T;
}

const PAGE = 500;
/** A page that is too large is asked for again with so much fewer. */
const FEWER = 5;
/** A list whose pages expire while it is read begins again: etcd forgets what is older than five minutes. */
const LISTS_MAX = 3;

/** @throws DriverError `unsupported` where the cluster does not serve this kind of object */
export async function listResources<T extends KubernetesObject>(
  connection: Connection,
  of: ResourceType<T>,
  scope: ListScope,
  ctx: DriverContext,
  options: ListOptions<T> = {},
): Promise<Listed<T>> {
  for (let count = 1; ; count += 1) {
    try {
      return await listPages(connection, of, scope, ctx, options);
    } catch (error) {
      if (!hasCode(error, 'expired') || count >= LISTS_MAX) throw error;
    }
  }
}

interface Page<T> {
  items?: T[] | null;
  metadata?: { continue?: string; resourceVersion?: string };
}

async function listPages<T extends KubernetesObject>(
  connection: Connection,
  of: ResourceType<T>,
  scope: ListScope,
  ctx: DriverContext,
  { pageSize = PAGE, keep = (object) => object }: ListOptions<T>,
): Promise<Listed<T>> {
  const items: T[] = [];
  let limit = pageSize;
  const { labelSelector, fieldSelector } = scope;
  const common = { method: 'GET', path: collectionPath(of, scope), subject: collectionSubject(of, scope) } as const;
  for (let position: string | undefined; ;) {
    const query = { labelSelector, fieldSelector, limit, continue: position };
    const page = (await connection.send({ ...common, query }, ctx).catch((error: unknown) => {
      // Secrets have up to 1 MiB each.
      if (hasCode(error, 'too_large') && limit > 1) return 'too large' as const;
      throw error;
    })) as Page<T> | 'too large' | null;
    if (page === 'too large') {
      limit = Math.ceil(limit / FEWER);
      continue;
    }
    const { continue: next, resourceVersion } = page?.metadata ?? {};
    // Lists of measurements have no position (metrics-server): they cannot be watched.
    if (!page || (resourceVersion === undefined && !Array.isArray(page.items)))
      throw new KubernetesError('transient', 'The answer of the API server is not a list.', 'malformed');
    // Items of a list do not say what they are.
    for (const item of page.items ?? []) items.push(keep({ apiVersion: of.apiVersion, kind: of.kind, ...item }));
    if (!next) return { items, resourceVersion: resourceVersion ?? '' };
    position = next;
  }
}
