// `attachRun` with `Upgrade: websocket`: the same address, rights and arguments as on REST, then a WebSocket.
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { admit, readmission, type Arguments, type RootOperation } from '../../contract/admission';
import type { Operation } from '../../contract/operations';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { Run, RUN_PROTOCOL } from '../../models/runs/run';
import { readArguments } from '../../rest/arguments';
import { countStream } from '../../rest/event_stream';
import type { RestParts } from '../../rest/exchange';
import { asProblem, writeProblem } from '../../rest/problem';
import { parseTarget } from '../../rest/request';
import { identify } from '../graphql/request';
import type { Platform } from '../platform/platform';
import { openAttachments } from './attachments';
import { serveClient } from './session';

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer, requestId: string) => boolean;

const OPERATION = 'attachRun';
/** Of one message of a client; a longer input comes in several. */
const MESSAGE_BYTES_MAX = 1024 * 1024;
const ADDRESS = /^\/v2\/applications\/([^/]+)\/runs\/([^/]+)\/attach$/;

/** Takes requests for a WebSocket at the address of `attachRun`, and no others. */
export function runAttachments(platform: Platform, parts: RestParts): UpgradeHandler {
  const operation = parts.table.operations.find(({ id }) => id === OPERATION) as Operation;
  const called = parts.operations.get(operation.field.name) as RootOperation;
  const attachments = openAttachments(platform);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES_MAX + 1,
    handleProtocols: () => RUN_PROTOCOL,
  });
  return (request, socket, head, requestId) => {
    const [, id, runId] = ADDRESS.exec((request.url ?? '').split('?')[0] as string) ?? [];
    if (!id || !runId || request.headers.upgrade?.toLowerCase() !== 'websocket') return false;
    const ctx = parts.context(request, requestId);
    const started = performance.now();
    const finish = (status: number, error: unknown = null): void => {
      const known = error === null ? null : asProblem(error);
      parts.done({
        ...{ request, started, request_id: requestId, operation: OPERATION, status },
        ...{ identity: ctx.identity, project: ctx.project, code: known?.code ?? null },
        cause: known === error ? null : error,
      });
    };
    void prepareClient(platform, ctx, { request, operation, called, params: { id, runId } })
      .then((client) => {
        sockets.handleUpgrade(request, socket, head, (ws) => {
          finish(101);
          void serveClient(platform, attachments, ws, { ctx, ...client }).finally(client.leave);
        });
        // A handshake that is none was answered, and its connection closed.
        if (socket.destroyed || socket.writableEnded) client.leave();
      })
      .catch((error: unknown) => {
        const known = asProblem(error);
        finish(known.status, error);
        reject(platform, request, socket, known, ctx);
      });
    return true;
  };
}

interface Request {
  request: IncomingMessage;
  operation: Operation;
  called: RootOperation;
  params: { id: string; runId: string };
}

interface Prepared {
  run: Run;
  args: Arguments;
  leave(): void;
}

/** All that may refuse the client. @throws what admission throws, not_found, rate_limited, malformed_request */
async function prepareClient(
  platform: Platform,
  ctx: Context,
  { request, operation, called, params }: Request,
): Promise<Prepared> {
  const { search } = parseTarget(request.url ?? '/');
  ctx.identity = await identify(platform, request, ctx.address);
  const args = await admit(ctx, called, {
    projectId: undefined,
    resourceId: params.id,
    readArguments: () => readArguments(request, { operation, params }, search),
  });
  const offered = String(request.headers['sec-websocket-protocol'] ?? '').split(/\s*,\s*/);
  if (!offered.includes(RUN_PROTOCOL))
    throw problem('malformed_request', `The WebSocket must offer the subprotocol ${RUN_PROTOCOL}.`);
  const run = await Run.ofApplication(ctx, params.id, params.runId);
  ctx.readmit = readmission(ctx, called);
  let isCounted = true;
  const uncount = countStream(ctx);
  return { run, args, leave: () => void (isCounted && ((isCounted = false), uncount())) };
}

function reject(
  { config }: Platform,
  request: IncomingMessage,
  socket: Duplex,
  failure: ReturnType<typeof asProblem>,
  { request_id }: Context,
): void {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.once('finish', () => socket.end());
  socket.on('error', () => socket.destroy());
  const instance = (request.url ?? '/').split('?')[0] as string;
  writeProblem(response, failure, { base_url: config.baseUrl, request_id, instance, head: false });
}
