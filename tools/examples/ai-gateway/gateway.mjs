// An example, not a part of the platform: a proxy for OpenAI-compatible APIs that accepts platform keys and reports
// usage. One file, no dependencies. See README.md.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const need = (name) => process.env[name] || exit(`${name} is not set`);
const exit = (text) => (console.error(text), process.exit(1));

const PLATFORM = need('PLATFORM_URL'); // http://127.0.0.1:8080
const ADMIN = need('PLATFORM_ADMIN_URL'); // http://127.0.0.1:9090
const USAGE_TOKEN = need('AI_USAGE_TOKEN');
const UPSTREAM = need('UPSTREAM_URL'); // https://api.example.com
const UPSTREAM_KEY = need('UPSTREAM_KEY');
const PATHS = new Set(['/v1/chat/completions', '/v1/completions', '/v1/embeddings']);
const BODY_MAX = 10_000_000;
const KEY_CACHE_MS = 10_000;

const server = createServer((request, response) => {
  serve(request, response).catch((error) => fail(response, error.status ?? 502, error.message));
});

async function serve(request, response) {
  if (request.method !== 'POST' || !PATHS.has(request.url)) return fail(response, 404, 'There is no such endpoint.');
  const project_id = await projectOf(request.headers);
  const body = await readJson(request);
  const wantsUsage = body.stream_options?.include_usage === true;
  // Without it, a streamed response does not report its usage.
  if (body.stream) body.stream_options = { ...body.stream_options, include_usage: true };
  const event = { id: randomUUID(), project_id, model_id: String(body.model), at: new Date().toISOString() };
  const left = new AbortController();
  response.on('close', () => response.writableEnded || left.abort());
  let usage = null;
  let failed = true;
  try {
    const answer = await fetch(UPSTREAM + request.url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${UPSTREAM_KEY}` },
      body: JSON.stringify(body),
      signal: left.signal,
    });
    failed = !answer.ok;
    response.writeHead(answer.status, { 'Content-Type': answer.headers.get('content-type') ?? 'application/json' });
    const isStream = body.stream && answer.ok;
    usage = isStream ? await relayStream(answer, response, wantsUsage) : await relayJson(answer, response);
  } finally {
    const { prompt_tokens = 0, completion_tokens = 0 } = usage ?? {};
    report({ ...event, input_tokens: prompt_tokens, output_tokens: completion_tokens, errors: failed ? 1 : 0 });
  }
}

async function relayJson(answer, response) {
  const text = await answer.text();
  response.end(text);
  try {
    return JSON.parse(text).usage ?? null;
  } catch {
    return null;
  }
}

/** Forwards the events. The usage-only event is held back unless the client requested it. */
async function relayStream(answer, response, wantsUsage) {
  const decoder = new TextDecoder();
  let usage = null;
  let rest = '';
  for await (const bytes of answer.body) {
    rest += decoder.decode(bytes, { stream: true });
    const events = rest.split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const text of events) {
      const data = dataOf(text);
      usage = data?.usage ?? usage;
      const isUsageAlone = data?.usage && !data.choices?.length;
      if (!isUsageAlone || wantsUsage) response.write(`${text}\n\n`);
    }
  }
  response.end(rest);
  return usage;
}

function dataOf(text) {
  try {
    return JSON.parse(text.replace(/^data: ?/, ''));
  } catch {
    return null;
  }
}

const keys = new Map();

/** The project of a key of the platform: its own, or the one that the header selects. */
async function projectOf({ authorization = '', 'x-svc-project': header }) {
  const cacheKey = `${authorization} ${header ?? ''}`;
  const cached = keys.get(cacheKey);
  if (cached && cached.until > Date.now()) return cached.id;
  const me = await getJson('/v2/me', authorization);
  const id = me.project?.id ?? header;
  if (!id) throw Object.assign(new Error('Name a project in X-Svc-Project.'), { status: 400 });
  if (!me.project) await getJson(`/v2/projects/${encodeURIComponent(id)}`, authorization);
  if (keys.size > 10_000) keys.clear();
  keys.set(cacheKey, { id, until: Date.now() + KEY_CACHE_MS });
  return id;
}

async function getJson(path, authorization) {
  const answer = await fetch(PLATFORM + path, { headers: { authorization } });
  const body = await answer.json();
  if (answer.ok) return body;
  throw Object.assign(new Error(body.detail ?? body.title), { status: answer.status });
}

// Pending events, until the platform has accepted them. To survive a crash, write them to a file first.
let waiting = [];
let sending = null;

function report(event) {
  waiting.push(event);
  sending ??= sendAll().finally(() => (sending = null));
}

/** The same batch again until it was taken: its events have ids, so that none is counted twice. */
async function sendAll() {
  for (let delayMs = 100; waiting.length;) {
    const batch = waiting.slice(0, 500);
    if (await isTaken(batch)) {
      waiting = waiting.slice(batch.length);
      delayMs = 100;
    } else {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      delayMs = Math.min(delayMs * 2, 10_000);
    }
  }
}

async function isTaken(events) {
  try {
    const answer = await fetch(`${ADMIN}/ai/usage`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${USAGE_TOKEN}` },
      body: JSON.stringify({ events }),
    });
    const { rejected = [], detail } = await answer.json();
    for (const { index, detail: why } of rejected) console.error(`usage ${events[index].id} was rejected: ${why}`);
    if (!answer.ok) console.error(`usage was not taken: ${detail}`);
    return answer.ok;
  } catch (error) {
    console.error(`usage was not taken: ${error.message}`);
    return false;
  }
}

async function readJson(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_MAX) throw Object.assign(new Error('The request is too large.'), { status: 413 });
    chunks.push(chunk);
  }
  try {
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (body && typeof body === 'object' && typeof body.model === 'string') return body;
  } catch {
    // Answered below.
  }
  throw Object.assign(new Error('The body must be JSON with a `model`.'), { status: 400 });
}

function fail(response, status, message) {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type: status < 500 ? 'invalid_request_error' : 'upstream_error' } }));
}

process.once('SIGTERM', async () => {
  await new Promise((resolve) => server.close(resolve));
  await sending;
  process.exit(0);
});

server.listen(Number(process.env.PORT ?? 8090), process.env.HOST ?? '127.0.0.1', () => {
  console.log(`gateway listens on ${server.address().port}`);
});
