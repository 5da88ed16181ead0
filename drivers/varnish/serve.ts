// A GET or HEAD of a visitor, answered by the Varnish that the object belongs to.
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
/** Varnish answers these from the whole object. */
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
    const answer = await ask(front, node, visit, wanted);
    if (visit.response.destroyed) return;
    if (typeof answer === 'object') return send(visit, answer);
    if (answer === 'broke off') return sendRefusal(visit.response, 502, ORIGIN_FAILED);
    node.suspect();
  }
  // Visitors come first: without a cache the origin answers.
  return passThrough(visit);
}

/** The node with the highest score has the object; without it the next one, and all others keep theirs. */
function ranked(nodes: readonly VarnishNode[], address: string): readonly VarnishNode[] {
  if (nodes.length === 1) return nodes;
  const score = ({ name }: VarnishNode): string => createHash('md5').update(`${name} ${address}`).digest('hex');
  return nodes
    .map((node) => ({ node, score: score(node) }))
    .sort((one, other) => (one.score < other.score ? 1 : -1))
    .map(({ node }) => node);
}

type Answer = IncomingMessage | 'broke off' | 'away';

function ask(front: Front, node: VarnishNode, visit: Visit, wanted: ObjectRequest, isAgain = false): Promise<Answer> {
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
    const asked = http.request({ host, port, agent, method: request.method, path: wanted.target, headers });
    asked.setTimeout(SILENCE_MS, () => asked.destroy(new Error('Varnish sent nothing')));
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET') return resolve('away');
      // Varnish closes what is idle, perhaps at this moment.
      resolve(asked.reusedSocket && !isAgain ? ask(front, node, visit, wanted, true) : 'broke off');
    });
    asked.on('response', resolve);
    response.once('close', () => asked.destroy());
    asked.end();
  });
}

/**
 * Varnish answers 416 to what is no range, which is to be ignored (RFC 9110 §14.2), and to an end that its numbers do
 * not hold.
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

function send(visit: Visit, answer: IncomingMessage): void {
  const { headers: given } = answer;
  const { response } = visit;
  if (given[FIELD.failed] !== undefined) {
    answer.resume();
    return sendRefusal(response, 502, ORIGIN_FAILED);
  }
  const told = String(given[FIELD.state] ?? 'bypass');
  const state = told === 'miss' && given[`${INTERNAL}renewed`] !== undefined ? 'renewed' : told;
  if (['hit', 'stale', 'renewed'].includes(state)) countHit(visit);
  const fields = withoutInternal(responseFields(given)) as HeaderFields;
  if (given[FIELD.via] !== undefined) fields.via = String(given[FIELD.via]);
  const age = state === 'bypass' ? null : Number(given.age ?? 0);
  if (state === 'bypass') delete fields.age;
  const headers = visitorFields(visit, fields, STATUS_OF[state] ?? 'fwd=bypass', age);
  // Varnish 7.1 compares no lists of entity tags.
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
