// Usage of AI models, as an inference gateway reports it: POST /ai/usage on the admin port, with the token of the
// operator. A batch is counted once, however often the gateway sends it.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MODEL_ID } from '../../core/catalog/ai_models';
import { formats } from '../../core/formats/formats';
import { limits } from '../../core/limits';
import { existingProjects, recordAiUsage, type UsageEvent } from '../../models/ai/ai_usage';
import type { Platform } from '../platform/platform';
import { BACKGROUND_PATH, respondWithBackground, type AdminRoute } from './admin';

const DAY_MS = 86_400_000;
/** How far ahead the clock of a gateway may be. */
const AHEAD_MS = 300_000;

/** What the admin port serves beside the metrics. */
export function adminRoutes(platform: Platform): Record<string, AdminRoute> {
  return {
    [BACKGROUND_PATH]: respondWithBackground,
    '/ai/usage': (request, response) => ingest(platform, request, response),
  };
}

async function ingest(
  { config, database, log }: Platform,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = (status: number, body: object): void =>
    void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  const refuse = (status: number, code: string, detail: string): void => answer(status, { code, detail });
  if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'Usage is reported with POST.');
  if (!config.aiUsageToken)
    return refuse(409, 'engine_unavailable', 'The operator has not set `AI_USAGE_TOKEN`, so no usage is accepted.');
  if (!hasToken(request, config.aiUsageToken))
    return refuse(401, 'token_invalid', 'Send the value of `AI_USAGE_TOKEN` as bearer token.');
  const text = await readBody(request);
  if (text === null) return refuse(413, 'body_too_large', `A batch has at most ${limits.aiUsageBodyBytes} bytes.`);
  const events = eventsOf(text);
  if (!events) return refuse(400, 'malformed_request', MALFORMED);
  try {
    answer(200, await count(database, events));
  } catch (error) {
    log.error({ err: error }, 'AI usage could not be recorded');
    refuse(503, 'service_unavailable', 'The usage could not be recorded. Send the same batch again.');
  }
}

const MALFORMED = `The body must be {"events": […]} with 1 to ${limits.aiUsageBatchMax} events, in JSON.`;

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const given = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

/** null where it is too long. The rest of it is read and forgotten, so that the answer arrives. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > 4 * limits.aiUsageBodyBytes) break;
    if (bytes <= limits.aiUsageBodyBytes) chunks.push(chunk);
  }
  return bytes > limits.aiUsageBodyBytes ? null : Buffer.concat(chunks).toString();
}

function eventsOf(text: string): unknown[] | null {
  try {
    const { events } = JSON.parse(text) as { events?: unknown };
    return Array.isArray(events) && events.length && events.length <= limits.aiUsageBatchMax ? events : null;
  } catch {
    return null;
  }
}

interface Counted {
  /** Events that were added now. */
  counted: number;
  /** Events that had been counted before, or stand in the batch twice. */
  repeated: number;
  /** Events that will never be counted; to send them again is of no use. */
  rejected: { index: number; detail: string }[];
}

async function count(sql: Platform['database'], given: unknown[]): Promise<Counted> {
  const now = Date.now();
  const parsed = given.map((event) => parseEvent(event, now));
  const valid = parsed.filter((event) => typeof event !== 'string');
  const projects = await existingProjects(
    sql,
    valid.map(({ project_id }) => project_id),
  );
  const rejected = parsed.flatMap((event, index) => {
    const detail = typeof event === 'string' ? event : projects.has(event.project_id) ? null : UNKNOWN_PROJECT;
    return detail ? [{ index, detail }] : [];
  });
  const accepted = valid.filter(({ project_id }) => projects.has(project_id));
  const different = [...new Map(accepted.map((event) => [event.id, event])).values()];
  const counted = different.length ? await recordAiUsage(sql, different) : 0;
  return { counted, repeated: accepted.length - counted, rejected };
}

const UNKNOWN_PROJECT = '`project_id` names no project.';

/** The complete event, or the reason why it is invalid. */
function parseEvent(given: unknown, now: number): UsageEvent | string {
  if (typeof given !== 'object' || given === null) return 'The event must be an object.';
  const { id, project_id, model_id, at, ...counts } = given as Record<string, unknown>;
  if (typeof id !== 'string' || !/^[\x21-\x7e]{1,128}$/.test(id))
    return '`id` must have 1 to 128 printable ASCII characters.';
  if (typeof project_id !== 'string' || !/^prj_[0-9a-z]{26}$/.test(project_id)) return UNKNOWN_PROJECT;
  if (typeof model_id !== 'string' || !MODEL_ID.test(model_id)) return '`model_id` is not a valid id of a model.';
  const time = typeof at === 'string' ? formats.timestamp(at)?.value : undefined;
  if (!time) return '`at` must be a time (RFC 3339).';
  const age = now - Date.parse(time);
  if (age > limits.aiUsageEventDays * DAY_MS) return `\`at\` is more than ${limits.aiUsageEventDays} days ago.`;
  if (age < -AHEAD_MS) return '`at` is in the future.';
  const { requests = 1, input_tokens = 0, output_tokens = 0, errors = 0 } = counts;
  for (const [name, value] of Object.entries({ requests, input_tokens, output_tokens, errors }))
    if (!isCount(value)) return `\`${name}\` must be an integer from 0 to ${limits.aiUsageCountMax}.`;
  return { id, project_id, model_id, at: time, requests, input_tokens, output_tokens, errors } as UsageEvent;
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= limits.aiUsageCountMax;
}
