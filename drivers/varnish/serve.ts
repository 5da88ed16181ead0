// GET or HEAD of a visitor, served by the Varnish node of the object.
import http, { type IncomingMessage } from 'node:http';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream';
import { parseByteRange } from '../../core/protocols/byte_range';
import { isNotModified } from '../../engines/cdn/edge/conditions';
import { responseFields, type HeaderFields } from '../../engines/cdn/edge/headers';
import {
  countHit,
  ORIGIN_FAILED,
  passThrough,
  sendRefusal,
  siteOf,
  visitorFields,
  objectRequestOf,
  type Visit,
  type ObjectRequest,
} from '../../engines/cdn/edge/visit';
import { FIELD, INTERNAL, withoutInternal } from './fields';
import type { VarnishNode } from './node';

export interface Front {
  nodes: readonly VarnishNode[];
  agent: http.Agent;
  token: string;
}

const SILENCE_MS = 75_000;
const HOST = 'cdn';
/** Varnish evaluates these against the whole object. */
const CONDITIONS = ['range', 'if-range', 'if-none-match', 'if-modified-since'] as const;
const STATUS_OF: Record<string, string> = {
  hit: 'hit',
  stale: 'hit; detail=stale',
  miss: 'fwd=uri-miss; stored',
  renewed: 'hit; fwd=stale; fwd-status=304',
  bypass: 'fwd=bypass',
};

export async function serveThroughVarnish(front: Front, visit: Visit): Promise<void> {
  const wanted = objectRequestOf(visit);
  for (const node of ranked(front.nodes, `${wanted.zone.id} ${siteOf(visit)} ${wanted.key}`)) {
    if (!node.isReady()) continue;
    const answer = await requestNode(front, node, visit, wanted);
    if (visit.response.destroyed) return;
    if (typeof answer === 'object') return send(visit, answer);
    if (answer === 'broke off') return sendRefusal(visit.response, 502, ORIGIN_FAILED);
    node.suspect();
  }
  // Without a cache node, the origin serves the visitor.
  return passThrough(visit);
}

/**
 * Rendezvous hashing: the node with the highest score has the object; if it fails, objects of other nodes stay in
 * place.
 */
function ranked(nodes: readonly VarnishNode[], address: string): readonly VarnishNode[] {
  if (nodes.length === 1) return nodes;
  const score = ({ name }: VarnishNode): string => createHash('md5').update(`${name} ${address}`).digest('hex');
  return nodes
    .map((node) => ({ node, score: score(node) }))
    .sort((one, other) => (one.score < other.score ? 1 : -1))
    .map(({ node }) => node);
}

type Answer = IncomingMessage | 'broke off' | 'away';

function requestNode(
  front: Front,
  node: VarnishNode,
  visit: Visit,
  wanted: ObjectRequest,
  isAgain = false,
): Promise<Answer> {
  const { agent, token } = front;
  const { request, visitor, zone, response } = visit;
  const { host, port } = node;
  const headers: HeaderFields = { ...(withoutInternal(wanted.headers) as HeaderFields), host: HOST };
  for (const name of CONDITIONS) if (request.headers[name] !== undefined) headers[name] = String(request.headers[name]);
  const range = rangeOf(request);
  if (range === null) delete headers.range;
  else headers.range = range;
  delete headers['accept-encoding'];
  if (zone.spec.compression && acceptsGzip(request)) headers['accept-encoding'] = 'gzip';
  Object.assign(headers, {
    ...{ [FIELD.token]: token, [FIELD.zone]: zone.id, [FIELD.domain]: visit.domain_id, [FIELD.site]: wanted.site },
    ...{ [FIELD.key]: wanted.key, [FIELD.client]: visitor.address },
    ...(zone.spec.cache.serve_stale && { [FIELD.serveStale]: '1' }),
  });
  return new Promise((resolve) => {
    const upstream = http.request({ host, port, agent, method: request.method, path: wanted.target, headers });
    upstream.setTimeout(SILENCE_MS, () => upstream.destroy(new Error('Varnish sent nothing')));
    upstream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET') return resolve('away');
      // Varnish closed the idle connection, perhaps at this moment.
      resolve(upstream.reusedSocket && !isAgain ? requestNode(front, node, visit, wanted, true) : 'broke off');
    });
    upstream.on('response', resolve);
    response.once('close', () => upstream.destroy());
    upstream.end();
  });
}

/**
 * Varnish responds with 416 to an invalid range, which must be ignored (RFC 9110 §14.2), and to an end beyond its
 * integer range.
 */
function rangeOf({ headers }: IncomingMessage): string | null {
  const parsed = parseByteRange(headers.range, Number.MAX_SAFE_INTEGER);
  if (parsed === null || parsed === 'reversed') return null;
  return String(headers.range).replace(/^(bytes=\d+-)\d{16,}$/, '$1');
}

function acceptsGzip({ headers }: IncomingMessage): boolean {
  const coding = /(?:^|,)\s*gzip\s*(?:;\s*q=([\d.]+))?\s*(?:,|$)/i.exec(String(headers['accept-encoding'] ?? ''));
  return coding !== null && Number(coding[1] ?? 1) > 0;
}

/** Varnish stores by Vary alone; what the origin has not said is not for visitors. */
function hideOrigin(fields: HeaderFields): void {
  const names = [fields.vary ?? []].flat().join(',').split(',');
  const shown = names.map((name) => name.trim()).filter((name) => name && name !== 'origin');
  if (shown.length) fields.vary = shown.join(', ');
  else delete fields.vary;
}

function send(visit: Visit, answer: IncomingMessage): void {
  const { headers: given } = answer;
  const { response } = visit;
  if (given[FIELD.failed] !== undefined) {
    answer.resume();
    return sendRefusal(response, 502, ORIGIN_FAILED);
  }
  const reported = String(given[FIELD.state] ?? 'bypass');
  const state = reported === 'miss' && given[`${INTERNAL}renewed`] !== undefined ? 'renewed' : reported;
  if (['hit', 'stale', 'renewed'].includes(state)) countHit(visit);
  const fields = withoutInternal(responseFields(given)) as HeaderFields;
  if (given[FIELD.via] !== undefined) fields.via = String(given[FIELD.via]);
  if (given[FIELD.forOrigin] !== undefined) hideOrigin(fields);
  const age = state === 'bypass' ? null : Number(given.age ?? 0);
  if (state === 'bypass') delete fields.age;
  const headers = visitorFields(visit, fields, STATUS_OF[state] ?? 'fwd=bypass', age);
  // Varnish 7.1 does not compare lists of entity tags.
  if (state !== 'bypass' && isNotModified(visit.request, { status: answer.statusCode ?? 0, headers })) {
    answer.destroy();
    delete headers['content-type'];
    return void response.writeHead(304, headers).end();
  }
  if (given['content-length'] !== undefined) headers['content-length'] = given['content-length'];
  response.writeHead(answer.statusCode ?? 502, headers);
  if (visit.request.method === 'HEAD') {
    answer.resume();
    return void response.end();
  }
  pipeline(answer, response, () => undefined);
}
