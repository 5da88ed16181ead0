// Which operation reads the resource that another one answers with: for Location, `Prefer: wait`, ETag and the links of
// the OpenAPI document.
import { getNullableType } from 'graphql';
import type { Operation } from './operations';

export interface Reader {
  operation: Operation;
  /** true: the last path parameter is the id of the returned record. false: all parameters come from the request. */
  byNewId: boolean;
}

/** The GraphQL type of the answer. */
export const answerTypeOf = (operation: Operation): string => String(getNullableType(operation.field.definition.type));

/** Readers by operation id; operations whose response is not a readable resource have no entry. */
export function readersOf(operations: Operation[]): ReadonlyMap<string, Reader> {
  const byType = new Map<string, Operation[]>();
  for (const operation of operations) {
    if (operation.method !== 'GET' || operation.field.list) continue;
    const type = answerTypeOf(operation);
    byType.set(type, [...(byType.get(type) ?? []), operation]);
  }
  return new Map(
    operations.flatMap((operation) => {
      const reader = readerAmong(byType.get(answerTypeOf(operation)) ?? [], operation);
      return reader ? [[operation.id, reader] as const] : [];
    }),
  );
}

function readerAmong(candidates: Operation[], { path, method, statuses }: Operation): Reader | undefined {
  const ofNew = candidates.find((candidate) => candidate.path.endsWith('}'));
  if (method === 'POST' && statuses.includes(201)) return ofNew && { operation: ofNew, byNewId: true };
  const parent = path.slice(0, path.lastIndexOf('/'));
  const same = candidates.find((candidate) => candidate.path === path || candidate.path === parent);
  return same && { operation: same, byNewId: false };
}

/** Values of the path parameters of the reader. */
export function readerParams(
  { operation, byNewId }: Reader,
  params: Record<string, string>,
  body: string,
): Record<string, string> {
  if (!byNewId) return params;
  const last = operation.params[operation.params.length - 1]?.name as string;
  return { ...params, [last]: (JSON.parse(body) as { id: string }).id };
}
