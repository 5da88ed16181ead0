// Parses a client's request: path, query string, body. Strict: no coercion, no silent repair.
import type { IncomingMessage } from 'node:http';
import { getNullableType, isEnumType, isListType, type GraphQLArgument } from 'graphql';
import { invalidQuery, problem, type Problem } from '../core/errors';
import { limits } from '../core/limits';
import type { Operation } from '../contract/operations';

interface Target {
  path: string;
  search: string;
}

/** Splits the address. @throws malformed_request for bad percent-encoding or NUL */
export function parseTarget(url: string): Target {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const search = mark < 0 ? '' : url.slice(mark + 1);
  if (url.includes('%')) {
    if (decode(path).includes('\0')) throw problem('malformed_request', 'The path contains NUL.');
  }
  return { path, search };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw problem('malformed_request', 'The address has bad percent-encoding.');
  }
}

/**
 * The query arguments of an operation, typed; parameters that it does not know are ignored. @throws malformed_request,
 * invalid_query_parameter
 */
export function parseQuery(search: string, operation: Operation): Record<string, unknown> {
  if (!search) return {};
  const raw = new Map<string, string>();
  for (const pair of search.split('&')) {
    if (!pair) continue;
    const mark = pair.indexOf('=');
    const name = decode((mark < 0 ? pair : pair.slice(0, mark)).replaceAll('+', ' '));
    const value = mark < 0 ? '' : decode(pair.slice(mark + 1).replaceAll('+', ' '));
    if (raw.has(name)) throw problem('malformed_request', `The query parameter ${name.slice(0, 100)} is given twice.`);
    if (value.includes('\0')) throw problem('malformed_request', 'A query parameter contains NUL.');
    raw.set(name, value);
  }
  const values: Record<string, unknown> = {};
  for (const argument of operation.query) {
    const text = raw.get(argument.name);
    if (text !== undefined) values[argument.name] = typed(argument, text);
  }
  return values;
}

// The validator checks bounds, enums and formats afterwards; here only the type.
function typed(argument: GraphQLArgument, text: string): unknown {
  const type = getNullableType(argument.type);
  if (isListType(type)) return text === '' ? [] : text.split(',');
  if (isEnumType(type)) return text;
  const name = String(type);
  if (name === 'Int' || name === 'ByteCount') return integer(argument.name, text);
  if (name === 'Boolean') return boolean(argument.name, text);
  return text;
}

function integer(name: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw invalidQuery(name, `${name} must be an integer.`);
  return Number(text);
}

function boolean(name: string, text: string): boolean {
  if (text !== 'true' && text !== 'false') throw invalidQuery(name, `${name} must be true or false.`);
  return text === 'true';
}

/**
 * The JSON object of the body, {} where none was sent. A larger one is not read to its end.
 * @throws unsupported_media_type, payload_too_large, malformed_json, request_timeout
 */
export async function parseBody(
  request: IncomingMessage,
  bytesMax: number = limits.bodyBytesMax,
): Promise<Record<string, unknown>> {
  requirePlain(request.headers['content-encoding']);
  const text = await readBody(request, bytesMax);
  if (text === '') return {};
  requireJson(request.headers['content-type']);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw problem('malformed_json');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw problem('malformed_json', 'The body must be a JSON object.');
  return body as Record<string, unknown>;
}

function requirePlain(encoding = 'identity'): void {
  if (encoding.toLowerCase() !== 'identity')
    throw problem('unsupported_media_type', 'Bodies are taken as they are, without Content-Encoding.');
}

function requireJson(type: string | undefined): void {
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type ?? '')) throw problem('unsupported_media_type');
}

function readBody(request: IncomingMessage, bytesMax: number): Promise<string> {
  const tooLarge = (): Problem =>
    problem('payload_too_large', undefined, { limit_bytes: bytesMax }, { Connection: 'close' });
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > bytesMax) return void (request.pause(), reject(tooLarge()));
      chunks.push(chunk);
    });
    request.on('end', () => {
      const text = utf8(chunks);
      if (text === null) reject(problem('malformed_json', 'The body is not UTF-8.'));
      else resolve(text);
    });
    request.on('error', () => reject(problem('request_timeout', undefined, {}, { Connection: 'close' })));
  });
}

const strict = new TextDecoder('utf-8', { fatal: true });

function utf8(chunks: Buffer[]): string | null {
  try {
    return strict.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  } catch {
    return null;
  }
}
