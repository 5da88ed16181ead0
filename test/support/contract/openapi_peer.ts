// A peer that is built on a published OpenAPI document: requests that the document does not allow are mistakes, and so
// are answers of the peer itself. Answers are filled up to what the document requires.
import Ajv, { type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { PeerRequest } from '../git/git_peer';

/* oxlint-disable typescript/no-explicit-any -- JSON Schema */

interface Operation {
  operationId: string;
  parameters?: any[];
  requestBody?: { required?: boolean; content: Record<string, { schema: any }> };
  responses: Record<string, { content?: Record<string, { schema: any }> }>;
}

export interface OpenapiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, any>>;
}

export interface PublishedOperation {
  id: string;
  method: string;
  /** A group for each parameter of the path. */
  path: RegExp;
  mistakesOf(asked: PeerRequest, params: string[]): string[];
  /** The answer with what is required and was not given; what the document does not have is a mistake. */
  complete(given: unknown): { status: number; json: unknown; mistakes: string[] };
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const PLAIN: Record<string, unknown> = { string: '', integer: 0, number: 0, boolean: false, array: [], object: {} };
const FORMATS: Record<string, string> = { 'date-time': '2026-01-31T09:30:00Z', uri: 'https://example.com/' };

export function publishedOperations(published: OpenapiDocument): PublishedOperation[] {
  const document = JSON.parse(JSON.stringify(published), withNull) as OpenapiDocument;
  const open = new Ajv({ strict: false, allErrors: true });
  const coercing = new Ajv({ strict: false, coerceTypes: true });
  for (const ajv of [open, coercing]) {
    addFormats(ajv);
    ajv.addSchema({ $id: 'document', components: document.components });
  }
  const compile = (ajv: Ajv, schema: any): ValidateFunction => ajv.compile(absolute(schema));
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => {
      const operation = methods[method] as Operation;
      const parameters = (operation.parameters ?? []).map((one) => resolve(document, one));
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const checks = new Map(parameters.map((one) => [one.name, compile(coercing, wrapped(one.schema))]));
      const body = operation.requestBody?.content['application/json']?.schema;
      const checkBody = body && compile(open, closed(document, body));
      const answer = answerOf(operation);
      const checkAnswer = answer.schema && compile(open, answer.schema);
      return {
        ...{ id: operation.operationId, method: method.toUpperCase(), path: pathPattern(path) },
        mistakesOf(asked, params) {
          const inPath = new Map(names.map((name, index) => [name, params[index]]));
          const unknown = [...asked.query.keys()].filter((name) => !parameters.some((one) => isQuery(one, name)));
          const wrong = parameters.flatMap((one) => {
            const value = one.in === 'path' ? inPath.get(one.name) : asked.query.get(one.name);
            if (value === null || value === undefined) return one.required ? [`${one.name} is missing`] : [];
            return checks.get(one.name)?.({ value }) ? [] : [`${one.name}=${value} is not allowed`];
          });
          return [...unknown.map((name) => `unknown parameter ${name}`), ...wrong, ...bodyMistakes(asked.body)];
        },
        complete(given) {
          if (!checkAnswer) return { status: answer.status, json: undefined, mistakes: [] };
          const unknown: string[] = [];
          const json = filled(document, answer.schema, given, 'answer', unknown);
          const wrong = checkAnswer(json) ? [] : errorsOf(checkAnswer, 'answer');
          return { status: answer.status, json, mistakes: [...unknown, ...wrong] };
        },
      } satisfies PublishedOperation;

      function bodyMistakes(given: unknown): string[] {
        if (!checkBody) return given === undefined ? [] : ['a body that nobody reads'];
        if (given === undefined) return operation.requestBody?.required ? ['the body is missing'] : [];
        return checkBody(given) ? [] : errorsOf(checkBody, 'body');
      }
    }),
  );
}

/** A word of a list that may be null too is published without null among the words. */
function withNull(_name: string, value: any): any {
  return value?.nullable && Array.isArray(value.enum) ? { ...value, enum: [...value.enum, null] } : value;
}

function answerOf({ responses }: Operation): { status: number; schema: any } {
  const [[status, response] = ['500', {}]] = Object.entries(responses);
  return { status: Number(status), schema: response.content?.['application/json']?.schema };
}

/** A value of the schema: what was given, and the least that is required beside it. */
function filled(document: OpenapiDocument, given: any, value: any, at: string, unknown: string[]): unknown {
  const schema = merged(document, given);
  if (value === null || (value === undefined && schema.nullable)) return null;
  if (schema.type === 'array' && Array.isArray(value))
    return value.map((one, index) => filled(document, schema.items, one, `${at}.${index}`, unknown));
  if (schema.properties && (value === undefined || typeof value === 'object')) {
    const names = new Set<string>([...(schema.required ?? []), ...Object.keys(value ?? {})]);
    const members = [...names].map((name) => {
      const property = schema.properties[name];
      if (!property) unknown.push(`${at}.${name} is not published`);
      return [name, property ? filled(document, property, value?.[name], `${at}.${name}`, unknown) : value?.[name]];
    });
    return Object.fromEntries(members);
  }
  if (value !== undefined) return value;
  if (schema.enum) return schema.enum[0];
  return FORMATS[schema.format] ?? PLAIN[schema.type] ?? null;
}

/** One object schema of what is combined: all of allOf, the first of oneOf and anyOf. */
function merged(document: OpenapiDocument, given: any): any {
  const schema = resolve(document, given);
  const parts = [...(schema.allOf ?? []), ...(schema.oneOf ?? schema.anyOf ?? []).slice(0, 1)];
  return parts
    .map((one) => merged(document, one))
    .reduce(
      (sum, one) => ({
        ...{ ...one, ...sum },
        ...((sum.properties ?? one.properties) && { properties: { ...one.properties, ...sum.properties } }),
        ...((sum.required ?? one.required) && { required: [...(sum.required ?? []), ...(one.required ?? [])] }),
      }),
      schema,
    );
}

/** The schema of a body, in which a member that it does not name is a mistake. */
function closed(document: OpenapiDocument, given: any): any {
  const schema = resolve(document, given);
  const properties = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, closed(document, one)]);
  return {
    ...schema,
    ...(schema.properties && { properties: Object.fromEntries(properties), additionalProperties: false }),
    ...(schema.items && { items: closed(document, schema.items) }),
  };
}

function resolve({ components }: OpenapiDocument, schema: any): any {
  const [, , kind = '', name = ''] = typeof schema?.$ref === 'string' ? schema.$ref.split('/') : [];
  return kind ? components[kind]?.[name] : schema;
}

/** References lead into the document that was added. */
function absolute(schema: any): any {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'));
}

function wrapped(schema: any): any {
  return { type: 'object', properties: { value: schema } };
}

function isQuery(one: { in: string; name: string }, name: string): boolean {
  return one.in === 'query' && one.name === name;
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, '([^/]+)')}$`);
}

function errorsOf(check: ValidateFunction, where: string): string[] {
  return (check.errors ?? []).map(({ instancePath, message, params }) =>
    `${where}${instancePath} ${message ?? ''} ${JSON.stringify(params)}`.trim(),
  );
}
