// Parameters in path and query.
import { getNullableType, isListType, isNonNullType, type GraphQLArgument } from 'graphql';
import { ownerOfArgument } from '../../contract/id_forms';
import type { Operation } from '../../contract/operations';
import { specOf } from '../../contract/spec';
import { rowType } from './response_type';
import type { DocumentBuilder } from './builder';
import type { Parameter, Ref } from './document';
import { leafExample } from './examples';
import { exampleIn, withoutUndefined } from './scalar_schemas';
import { requestHeaders } from './headers';
import { pathIdSchema } from './id_schemas';
import { parameterSchema } from './schemas';

/** Path, query and headers of an operation, in this order. */
export function parametersOf(builder: DocumentBuilder, operation: Operation): (Parameter | Ref)[] {
  return [
    ...operation.params.map((param) => pathParameter(builder, operation, param)),
    ...operation.query.map((argument) => queryParameter(builder, operation, argument)),
    ...requestHeaders(builder, operation),
  ];
}

function pathParameter(
  builder: DocumentBuilder,
  operation: Operation,
  param: { name: string; argument: string },
): Parameter {
  const argument = operation.field.definition.args.find(
    (candidate) => candidate.name === param.argument,
  ) as GraphQLArgument;
  const own = exampleIn(specOf(builder.schema, argument));
  const id = own === undefined ? pathIdSchema(builder, operation, param.name) : null;
  const schema = id?.schema ?? parameterSchema(builder, '', argument);
  return withoutUndefined({
    name: param.name,
    in: 'path' as const,
    description: pathWords(operation, param.name, argument),
    required: true,
    schema,
    example: own ?? id?.example,
  });
}

// The description of an optional argument says what its absence means; in a path it can't be absent.
function pathWords({ path }: Operation, name: string, argument: GraphQLArgument): string {
  if (argument.description && isNonNullType(argument.type)) return argument.description;
  const thing = partBefore(path, name);
  return /^id$|Id$/.test(name) ? `Id of the ${thing}.` : `The ${name} of the ${thing}.`;
}

/** `/v2/applications/{id}` -> "application". */
function partBefore(path: string, name: string): string {
  const word =
    path
      .slice(0, path.indexOf(`/{${name}}`))
      .split('/')
      .pop() ?? '';
  return word
    .replaceAll('_', ' ')
    .replace(/ies$/, 'y')
    .replace(/(?<!s)s$/, '');
}

function queryParameter(builder: DocumentBuilder, operation: Operation, argument: GraphQLArgument): Parameter | Ref {
  const parameter = makeQuery(builder, operation, argument);
  return argument.name === 'cursor' ? builder.use('parameters', 'Cursor', () => parameter) : parameter;
}

function makeQuery(builder: DocumentBuilder, operation: Operation, argument: GraphQLArgument): Parameter {
  const list = isListType(getNullableType(argument.type));
  const own = exampleIn(specOf(builder.schema, argument));
  return withoutUndefined({
    name: argument.name,
    in: 'query' as const,
    description: argument.description ?? describeParameter(operation, argument.name, list),
    required: isNonNullType(argument.type) && argument.defaultValue === undefined,
    style: list ? ('form' as const) : undefined,
    explode: list ? (false as const) : undefined,
    schema: parameterSchema(builder, ownerOf(builder, operation, argument.name), argument),
    example: own ?? (argument.name === 'limit' ? leafExample(builder, '', argument) : undefined),
  });
}

function ownerOf({ schema }: DocumentBuilder, operation: Operation, argument: string): string {
  return rowType(operation)?.name ?? ownerOfArgument(schema, operation.field.name, argument);
}

const PAGING: Record<string, string> = {
  limit: 'Number of entries per page. A larger number than the maximum is treated as the maximum.',
  cursor: '`next_cursor` of the previous page. It includes the sort order and the filters.',
  sort: 'Sort key. Prefix it with `-` for descending order.',
};

function describeParameter(operation: Operation, name: string, list: boolean): string {
  const known = operation.field.list ? PAGING[name] : undefined;
  if (known) return known;
  if (list) return `Comma-separated list of \`${name}\`.`;
  return operation.field.list ? `Returns only entries with this \`${name}\`.` : `Value of \`${name}\`.`;
}
