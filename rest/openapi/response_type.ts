// Response types of operations.
import { getNullableType, isListType, isObjectType, type GraphQLObjectType } from 'graphql';
import type { Operation } from '../../contract/operations';

/** The object type of the body; null where there is no body or no object. */
export function responseType(operation: Operation): GraphQLObjectType | null {
  const type = getNullableType(operation.field.definition.type);
  return isObjectType(type) ? type : null;
}

/** The type of a list's rows. */
export function rowType(operation: Operation): GraphQLObjectType | null {
  const data = operation.field.list ? getNullableType(responseType(operation)?.getFields().data?.type) : null;
  const row = isListType(data) ? getNullableType(data.ofType) : null;
  return isObjectType(row) ? row : null;
}

/** An answer that carries an ETag: everything read that is not a list of rows which come and go. */
export function isTagged(operation: Operation): boolean {
  return operation.method === 'GET' && (!operation.field.list || operation.field.global);
}
