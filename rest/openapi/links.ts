// Links from the operation that creates a resource to those that get, update and delete it.
import type { Operation } from '../../contract/operations';
import type { DocumentBuilder } from './builder';
import { usesProjectHeader } from './error_codes';
import type { Link } from './document';

const VERBS: Record<string, string> = { GET: 'Reads', PATCH: 'Updates', PUT: 'Replaces', DELETE: 'Deletes' };

/** The links of a 201 response, undefined if the new resource has no item path. */
export function linksOf(builder: DocumentBuilder, operation: Operation): Record<string, Link> | undefined {
  const path = itemPath(builder, operation);
  if (!path || operation.method !== 'POST') return undefined;
  const targets = builder.table.operations.filter((other) => other.path === path && other.method !== 'POST');
  const links = targets.flatMap((target) => {
    const parameters = parametersFor(operation, target);
    return parameters
      ? [
          [
            target.id,
            { operationId: target.id, description: `${VERBS[target.method]} the new resource.`, parameters },
          ] as const,
        ]
      : [];
  });
  return links.length ? Object.fromEntries(links) : undefined;
}

// Where no operation reads a single resource (custom domains), the path below the collection is its own.
function itemPath(builder: DocumentBuilder, operation: Operation): string | undefined {
  const reader = builder.readers.get(operation.id);
  if (reader) return reader.operation.path;
  const below = builder.table.operations.find(
    (other) => other.path.startsWith(`${operation.path}/{`) && other.path.endsWith('}'),
  );
  return operation.statuses.includes(201) ? below?.path : undefined;
}

function parametersFor(operation: Operation, target: Operation): Record<string, string> | null {
  const parameters: Record<string, string> = {};
  const last = target.params[target.params.length - 1]?.name;
  for (const { name } of target.params) {
    if (name === last) parameters[name] = '$response.body#/id';
    else if (operation.params.some((param) => param.name === name)) parameters[name] = `$request.path.${name}`;
    else return null;
  }
  if (usesProjectHeader(target)) parameters['X-Svc-Project'] = projectOf(operation);
  return parameters;
}

function projectOf(operation: Operation): string {
  const inPath = operation.params.find((param) => param.argument === operation.field.projectArgument);
  return inPath ? `$request.path.${inPath.name}` : '$request.header.X-Svc-Project';
}
