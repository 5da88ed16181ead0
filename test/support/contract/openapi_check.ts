// Holds answers against the OpenAPI document: status, headers, media type and body. Stricter than the document in three
// points: objects have no further members, times are UTC with milliseconds, authenticated answers show the rate limit.
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import type { Header, OpenApiDocument, OperationObject, Ref, Response, Schema } from '../../../rest/openapi/document';

export interface CheckedResponse {
  status: number;
  headers: Headers;
  /** Parsed JSON, null where there is none. */
  body: unknown;
  text: string;
}

/** What is wrong with an answer, one line each; [] = as documented. `path` is what was requested, query included. */
export type ResponseChecker = (method: string, path: string, answer: CheckedResponse) => string[];

interface DocumentedOperation {
  template: string;
  item: Record<string, OperationObject>;
}

const RATE_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy'];
const ID = 'openapi';

export function responseChecker(document: OpenApiDocument): ResponseChecker {
  const find = operationFinder(document);
  const validate = validator(document);
  return (method, path, answer) => {
    const mistakes = answer.headers.get('x-request-id') ? [] : ['X-Request-Id is missing'];
    const bare = path.split('?')[0] as string;
    if (!isOperationPath(bare) || method === 'OPTIONS') return mistakes;
    const place = find(bare);
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    const operation = place?.item[verb];
    if (!place || !operation) return [...mistakes, ...checkNoOperation(validate, place, answer)];
    const pointer = ['paths', place.template, verb];
    return [
      ...mistakes,
      ...checkOperation({ document, validate, operation, pointer, headOnly: method === 'HEAD' }, answer),
    ];
  };
}

function isOperationPath(path: string): boolean {
  return path.startsWith('/v2/') && !/^\/v2\/(?:docs(?:\/|$)|openapi\.|stack\.schema\.)/.test(path);
}

/** A literal segment wins over a parameter, as in the router. */
function operationFinder(document: OpenApiDocument): (path: string) => DocumentedOperation | undefined {
  const places = Object.entries(document.paths).map(([template, item]) => ({
    template,
    item,
    params: template.split('{').length,
    pattern: new RegExp(`^${template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  }));
  places.sort((a, b) => a.params - b.params);
  return (path) => places.find((place) => place.pattern.test(path));
}

type Validate = (pointer: string[], value: unknown) => string[];

/** Validates a value against the schema at a place of the document. */
function validator(document: OpenApiDocument): Validate {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  addFormats(ajv);
  // A quoted local part is an address too (JSON Schema 2020-12 §7.3.2, RFC 5321 §4.1.2).
  ajv.addFormat('email', /^(?:[\w!#$%&'*+/=?^`{|}~.-]+|"(?:[ !#-[\]-~]|\\[ -~])*")@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$/);
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  ajv.addSchema(closed(document), ID);
  const compiled = new Map<string, ValidateFunction>();
  return (pointer, value) => {
    const fragment = pointer
      .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    let check = compiled.get(fragment);
    if (!check) compiled.set(fragment, (check = ajv.compile({ $ref: `${ID}#/${fragment}` })));
    if (check(value)) return [];
    return (check.errors ?? []).map(
      (error) => `body${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`,
    );
  };
}

/** A copy whose component objects have no further members. */
function closed(document: OpenApiDocument): OpenApiDocument {
  const copy = structuredClone(document);
  for (const schema of Object.values(copy.components.schemas))
    if (schema.properties) schema.additionalProperties = false;
  return copy;
}

function checkNoOperation(
  validate: Validate,
  place: DocumentedOperation | undefined,
  answer: CheckedResponse,
): string[] {
  const expected = place ? { status: 405, code: 'method_not_allowed' } : { status: 404, code: 'route_not_found' };
  // What can't be read at all is refused before its path is looked up.
  const early = ['malformed_request', 'headers_too_large', 'request_timeout', 'service_unavailable'];
  if (!answer.text) return answer.status === expected.status ? [] : [`${answer.status} without an operation`];
  const mistakes = validate(['components', 'schemas', 'Problem'], answer.body);
  const code = codeOf(answer.body);
  if (early.includes(code)) return mistakes;
  if (answer.status !== expected.status || code !== expected.code)
    mistakes.push(`expected ${expected.status} ${expected.code}, got ${answer.status} ${code}`);
  if (place && !answer.headers.get('allow')) mistakes.push('Allow is missing');
  return mistakes;
}

interface Expectation {
  document: OpenApiDocument;
  validate: Validate;
  operation: OperationObject;
  pointer: string[];
  headOnly: boolean;
}

function checkOperation(expectation: Expectation, answer: CheckedResponse): string[] {
  const { document, operation } = expectation;
  const documented = operation.responses[answer.status];
  if (!documented) return [`${operation.operationId} does not document ${answer.status} (${codeOf(answer.body)})`];
  const pointer =
    '$ref' in documented
      ? documented.$ref.slice(2).split('/')
      : [...expectation.pointer, 'responses', String(answer.status)];
  const response = resolve<Response>(document, documented);
  return [...checkHeaders(expectation, response, answer), ...checkContent(expectation, response, pointer, answer)];
}

function checkHeaders({ document, operation }: Expectation, response: Response, answer: CheckedResponse): string[] {
  const counted = answer.status < 400 && operation['x-required-scope'] !== 'none';
  const mistakes: string[] = [];
  for (const [name, entry] of Object.entries(response.headers ?? {})) {
    const header = resolve<Header>(document, entry);
    const value = answer.headers.get(name);
    if (value !== null) mistakes.push(...checkHeader(name, header.schema, value));
    else if (header.required || (counted && RATE_HEADERS.includes(name))) mistakes.push(`${name} is missing`);
  }
  for (const name of ['ETag', 'Location', 'Retry-After', ...RATE_HEADERS]) {
    if (answer.headers.has(name) && !response.headers?.[name])
      mistakes.push(`${name} is not documented for ${answer.status}`);
  }
  return mistakes;
}

function checkHeader(name: string, schema: Schema, value: string): string[] {
  if (schema.type === 'integer' && !/^\d+$/.test(value)) return [`${name} is no integer: ${value}`];
  if (schema.pattern && !new RegExp(schema.pattern, 'u').test(value))
    return [`${name} does not match ${schema.pattern}: ${value}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${name} is none of ${schema.enum.join(', ')}: ${value}`];
  if (schema.format === 'uri' && !URL.canParse(value)) return [`${name} is no address: ${value}`];
  return [];
}

function checkContent(
  { validate, headOnly }: Expectation,
  response: Response,
  pointer: string[],
  answer: CheckedResponse,
): string[] {
  const [type] = Object.keys(response.content ?? {});
  if (!type || headOnly) return answer.text ? [`a body where none is documented (${answer.status})`] : [];
  const sent = (answer.headers.get('content-type') ?? '').split(';')[0];
  if (sent !== type) return [`Content-Type is ${sent}, not ${type}`];
  return validate([...pointer, 'content', type, 'schema'], answer.body);
}

function resolve<Part>(document: OpenApiDocument, part: Part | Ref): Part {
  const { $ref } = part as Ref;
  if (!$ref) return part as Part;
  return $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], document) as Part;
}

function codeOf(body: unknown): string {
  return String((body as { code?: string } | null)?.code);
}
