// The OpenAPI 3.1 document, written from the operation table and the schema.
import type { GraphQLSchema } from 'graphql';
import { groups, type Group } from '../core/groups';
import { limits } from '../core/limits';
import type { OperationTable } from '../contract/operations';
import { createDocumentBuilder, type DocumentBuilder } from './openapi/builder';
import type { OpenApiDocument, Tag } from './openapi/document';
import { operationObject } from './openapi/operation';
import { useSecuritySchemes } from './openapi/security';
import type { Transitional } from './prefer_wait';

export type { OpenApiDocument } from './openapi/document';

interface OpenApiInput {
  table: OperationTable;
  schema: GraphQLSchema;
  transitional: Transitional;
  /** Address of this installation, without a slash at its end. */
  baseUrl: string;
  /** Version of the service. */
  version: string;
}

/**
 * The complete description of the REST face.
 * @throws Error with one clear line on an unknown format, an unknown error code or an example that is not JSON
 */
export function openapiDocument({ table, schema, transitional, baseUrl, version }: OpenApiInput): OpenApiDocument {
  const builder = createDocumentBuilder(schema, table, transitional);
  useSecuritySchemes(builder, baseUrl);
  const paths = pathsOf(builder);
  const used = new Set(table.operations.map((operation) => operation.group));
  return {
    openapi: '3.1.0',
    info: infoOf(baseUrl, version),
    servers: [{ url: baseUrl, description: 'This installation' }],
    security: [{ bearer: [] }, { oauth: [] }],
    tags: groups.filter((group) => used.has(group.name)).map(tagOf),
    paths,
    components: sorted(builder),
  };
}

function tagOf({ name, description, extension }: Group): Tag {
  return extension ? { name, description, 'x-extension': extension } : { name, description };
}

function pathsOf(builder: DocumentBuilder): OpenApiDocument['paths'] {
  const paths: OpenApiDocument['paths'] = {};
  for (const operation of builder.table.operations) {
    const path = (paths[operation.path] ??= {});
    path[operation.method.toLowerCase()] = operationObject(builder, operation);
  }
  return paths;
}

function sorted(builder: DocumentBuilder): OpenApiDocument['components'] {
  const entries = Object.entries(builder.components).filter(([, parts]) => Object.keys(parts).length);
  const byName = entries.map(([kind, parts]) => [
    kind,
    Object.fromEntries(Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1))),
  ]);
  return Object.fromEntries(byName) as OpenApiDocument['components'];
}

function infoOf(baseUrl: string, version: string): OpenApiDocument['info'] {
  return {
    title: 'Platform API',
    version,
    summary: 'The control plane of a hosting platform.',
    description: introduction(),
    contact: { name: 'Operator of this installation', url: baseUrl },
    license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
  };
}

function introduction(): string {
  const { rateBudgetsPerMinute: budgets } = limits;
  const paragraphs = [
    ['A JSON-over-HTTP API for projects, applications, databases and all other resources of the platform.'],
    [
      '**Keys.** Every request needs the header `Authorization: Bearer <key>`. A personal key acts as a user and has',
      'scopes. `x-required-scope` is the scope that an operation requires. A project key has full access to its ' +
        'project.',
    ],
    [
      '**Projects.** Paths below `/v2/projects/{id}` contain the id of the project. All other paths use the project in',
      'the header `X-Svc-Project`.',
    ],
    [
      '**Lists** return `data` and `next_cursor`. To get the next page, send `next_cursor` as `cursor`. It is null on',
      'the last page.',
    ],
    ['**Errors** are problem documents (RFC 9457) with a stable `code`. `GET /v2/errors` lists all codes.'],
    [
      '**Updates.** Fields that are left out keep their values, null removes a value, and lists are replaced as ' +
        'a whole.',
      'Unknown fields are rejected.',
    ],
    [
      `**Rate limits** apply per account and minute: ${budgets.read} reads, ${budgets.write} writes and`,
      `${budgets.deploy} deployments, unless the operator has set others. \`RateLimit-Remaining\` is the number ` +
        'of calls left.',
    ],
  ];
  return paragraphs.map((lines) => lines.join(' ')).join('\n\n');
}
