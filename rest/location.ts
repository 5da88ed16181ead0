// The Location of a created record: where the operation that gets it would find it.
import { getNullableType } from 'graphql';
import type { Operation } from '../contract/operations';

export type Locate = (operation: Operation, params: Record<string, string>, body: string) => Record<string, string>;

/** Prepares, for each operation that answers 201, the path of its single read; {} where there is none. */
export function locations(operations: Operation[], baseUrl: string): Locate {
  const getters = new Map<string, Operation>();
  for (const operation of operations) {
    if (operation.method === 'GET' && !operation.field.list && operation.path.endsWith('}'))
      getters.set(typeOf(operation), operation);
  }
  return (operation, params, body): Record<string, string> => {
    const getter = operation.statuses.includes(201) ? getters.get(typeOf(operation)) : undefined;
    if (!getter) return {};
    const { id } = JSON.parse(body) as { id?: string };
    const last = getter.params[getter.params.length - 1]?.name;
    const path = getter.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent((name === last ? id : params[name]) ?? ''),
    );
    return { Location: baseUrl + path };
  };
}

const typeOf = (operation: Operation): string => String(getNullableType(operation.field.definition.type));
